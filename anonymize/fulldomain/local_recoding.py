"""Local recoding by repeated search: what one node would suppress is recoded at another.

Each round searches the optimum for the records that are left, with as much suppression as pays, and publishes the good
classes of that node. Every class meets the requirements by itself, so the union does.

Source: Prasser, Kohlmayer and Kuhn, "The importance of context: risk-based de-identification of biomedical data", 2016,
and the local recoding of ARX ("repeated optimisation").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.examination import Examiner
from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.optimal import least_loss_node
from anonymize.fulldomain.releasing import Recoding, Suppressed, release
from anonymize.fulldomain.search import CountedProblem, Problem, Search, no_solution
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import MASKED, Release
from anonymize.tables import Table


@dataclass(frozen=True, eq=False)
class _Round:
    """A node and the tuples that are published at it, shape (u,)."""

    node: Node
    tuples: NDArray[np.bool_]


def local_recode(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
) -> Release:
    """Recodes records at several nodes, so that few or none are suppressed.

    Arguments are those of `optimal`; `loss` is what each round minimises, and `max_suppression` holds in the end.

    Returns:
        The release; `details["rounds"]` holds each round's node and how many records it published.

    Raises:
        ConfigurationError: No node satisfies for the whole table, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.
    """
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    return release(problem, recode(problem, loss), suppressed)


def recode(problem: CountedProblem, loss: str) -> Recoding:
    """What becomes of each distinct tuple, see `local_recode`.

    Raises:
        ConfigurationError: No node satisfies for the whole table, or a parameter is wrong.
    """
    recoding = _LocalRecoding(problem, loss)
    rounds = recoding.rounds()
    levels = np.full(problem.frequency.leaves.T.shape, MASKED, np.int8)
    for each in rounds:
        levels[each.tuples] = each.node
    weights = problem.frequency.weights
    published = [(each.node, int(weights[each.tuples].sum())) for each in rounds]
    return Recoding("local_recode", levels, recoding.statistics(), {"rounds": published})


class _LocalRecoding:
    def __init__(self, problem: CountedProblem, loss: str) -> None:
        self.problem, self.loss = problem, loss
        self.nodes = self.checked = 0

    def rounds(self) -> list[_Round]:
        """Rounds until what is left may be suppressed.

        If in the end too much is left that forms no class, the last rounds are taken back and their records searched
        again, now within MaxSup; without any round left that is the search for a node for the whole table.

        Raises:
            ConfigurationError: That has no solution.
        """
        left = np.ones(len(self.problem.frequency.weights), bool)
        rounds: list[_Round] = []
        while left.any():
            found = self._round(left, allowed=int(self.problem.frequency.weights[left].sum()))
            if found is None:
                break
            rounds.append(found)
            left &= ~found.tuples
        while self.problem.frequency.weights[left].sum() > self.problem.allowed:
            found = self._round(left, allowed=self.problem.allowed)
            if found is not None:
                return [*rounds, found]
            if not rounds:
                raise no_solution(self.problem.search(self.loss))
            left |= rounds.pop().tuples
        return rounds

    def statistics(self) -> dict[str, int | float]:
        """Work of all rounds."""
        return {"nodes": self.nodes, "checked": self.checked}

    def _round(self, left: NDArray[np.bool_], allowed: int) -> _Round | None:
        """The best node for the tuples that are left; None where no class is good."""
        problem = self.problem
        examiner = Examiner(problem.requirements.models, allowed)
        search = Search(problem.frequency.among(left), problem.ordered_hierarchies, examiner, self.loss)
        node = least_loss_node(search)
        self.nodes = search.lattice.size
        self.checked += search.statistics.checked
        if node is None:
            return None
        verdict = search.verdict(node)
        if not verdict.good.any():
            return None
        tuples = np.zeros(len(left), bool)
        tuples[np.flatnonzero(left)[verdict.good[verdict.labels]]] = True
        return _Round(node, tuples)
