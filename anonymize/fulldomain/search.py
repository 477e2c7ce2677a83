"""The engine under all full-domain algorithms: examined nodes, what they imply for others, and counts of the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.examination import Examiner, Verdict
from anonymize.fulldomain.frequency import FrequencySet, Recoder, RepeatedRecoder
from anonymize.fulldomain.lattice import Lattice, Node
from anonymize.fulldomain.objectives import Objective, objective
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import allowed_suppression
from anonymize.tables import Table
from link.errors import ConfigurationError

Marks = NDArray[np.bool_]

_DECIMALS = 12  # losses that agree to so many are equal, whatever the order of summation


@dataclass
class SearchStatistics:
    """How much work a search did.

    Attributes:
        nodes: Size of the lattice.
        checked: Examinations of a node, also of nodes of fewer quasi-identifiers.
        rolled_up: Examinations that used the frequency set of a specialisation.
        pruned: Nodes left out without an examination: certain to fail, or unable to be better.
        marked: Nodes known to satisfy without an examination.
    """

    nodes: int
    checked: int = 0
    rolled_up: int = 0
    pruned: int = 0
    marked: int = 0


class Tags:
    """What is known of each node, in arrays of the lattice's shape.

    Attributes:
        hopeless: Nodes that cannot be released, nor any of their specialisations.
        satisfying: Nodes that can be released.
        examined: Nodes that were looked at.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.hopeless: Marks = lattice.zeros(bool)
        self.satisfying: Marks = lattice.zeros(bool)
        self.examined: Marks = lattice.zeros(bool)


class Search:
    """A problem of full-domain recoding, and what is known of its nodes.

    Args:
        frequency: The distinct tuples and their records.
        hierarchies: One for each quasi-identifier, in order.
        examiner: The requirements.
        loss: Name of the objective, see `objectives.objective`.

    Attributes:
        statistics: Work so far.
    """

    def __init__(
        self, frequency: FrequencySet, hierarchies: tuple[Hierarchy, ...], examiner: Examiner, loss: str
    ) -> None:
        self.frequency, self.hierarchies, self.examiner = frequency, hierarchies, examiner
        self.lattice = Lattice([hierarchy.height for hierarchy in hierarchies])
        self.recoder = Recoder(hierarchies)
        self._repeated = RepeatedRecoder(self.recoder, frequency)
        self.objective: Objective = objective(loss, frequency, self.lattice, hierarchies)
        self.statistics = SearchStatistics(self.lattice.size)

    @cached_property
    def tags(self) -> Tags:
        """What is known of each node; only searches that infer need it, and a lattice that is not too large."""
        return Tags(self.lattice)

    def examine(self, node: Node) -> Verdict:
        """Groups the tuples at a node, judges the classes, and tags what follows for other nodes."""
        verdict = self.look(node)
        self.record(node, verdict)
        return verdict

    def look(self, node: Node) -> Verdict:
        """Groups the tuples at a node and judges the classes; counts the work but infers nothing."""
        self.statistics.checked += 1
        return self.verdict(node)

    def verdict(self, node: Node) -> Verdict:
        """Groups the tuples at a node and judges the classes, outside the search."""
        return self.examiner.examine(self.frequency, *self._repeated.classes(node))

    def record(self, node: Node, verdict: Verdict) -> None:
        """Tags what a verdict implies for a node and others."""
        self.tags.examined[node] = True
        if verdict.hopeless:
            self.tags.hopeless[self.lattice.below(node)] = True
        elif verdict.satisfied:
            self.tags.satisfying[self.lattice.above(node) if self.examiner.monotone else node] = True

    def satisfies(self, node: Node) -> bool:
        """Whether a node can be released; examined only where that is not known."""
        if self.tags.satisfying[node]:
            return True
        return not (self.tags.hopeless[node] or self.tags.examined[node]) and self.examine(node).satisfied

    def is_hopeless(self, node: Node) -> bool:
        """Whether neither a node nor any specialisation can be released; examined only where that is not known."""
        if self.tags.satisfying[node] or self.tags.examined[node]:
            return bool(self.tags.hopeless[node])
        return bool(self.tags.hopeless[node]) or self.examine(node).hopeless

    def rank(self, loss: float, node: Node) -> tuple[float, Node]:
        """By which nodes are compared: the loss, and of equal losses the lexicographically least node."""
        return round(float(loss), _DECIMALS), node

    def least_loss(self, nodes: list[Node]) -> Node:
        """The node of least loss among satisfying ones, at least one."""
        best: tuple[float, Node] | None = None
        for bound, node in sorted(self.rank(float(self.objective.bounds[node]), node) for node in nodes):
            if best is None or bound <= best[0]:
                ranked = self.rank(self._loss(node), node)
                best = ranked if best is None else min(best, ranked)
        assert best is not None
        return best[1]

    def finished(self) -> dict[str, int | float]:
        """The statistics of a search that has ended."""
        if "tags" in vars(self):
            unseen = ~self.tags.examined
            self.statistics.pruned = int((unseen & ~self.tags.satisfying).sum())
            self.statistics.marked = int((unseen & self.tags.satisfying).sum())
        return dict(vars(self.statistics))

    def _loss(self, node: Node) -> float:
        return self.objective.loss(node, self.verdict(node))


@dataclass(frozen=True, eq=False)
class CountedProblem:
    """The distinct tuples of a table, made ready for full-domain search: no algorithm looks at rows.

    Attributes:
        table: The input.
        hierarchies: By quasi-identifier.
        requirements: Fitted to the table.
        allowed: MaxSup in rows.
        frequency: The distinct tuples.
    """

    table: Table
    hierarchies: Mapping[str, Hierarchy]
    requirements: Requirements
    allowed: int
    frequency: FrequencySet

    @property
    def ordered_hierarchies(self) -> tuple[Hierarchy, ...]:
        """In the order of the quasi-identifiers."""
        return tuple(self.hierarchies[column.name] for column in self.table.quasi_identifiers)

    def search(self, loss: str) -> Search:
        """A new search on this problem."""
        return Search(self.frequency, self.ordered_hierarchies, Examiner(self.requirements.models, self.allowed), loss)


@dataclass(frozen=True, eq=False)
class Problem(CountedProblem):
    """A table in memory, made ready for full-domain search.

    Attributes:
        tuples: Tuple of each row, shape (n,).
    """

    tuples: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        table: Table,
        hierarchies: Mapping[str, Hierarchy],
        requirements: Requirements,
        max_suppression: float | Decimal | str,
    ) -> Problem:
        """Checks the parameters and counts the distinct tuples.

        Raises:
            ConfigurationError: A quasi-identifier has no hierarchy, there is none, MaxSup is no share, or a model
                certainly cannot be met.
            InputDataError: A hierarchy lacks values.
        """
        fitted, allowed = fitted_requirements(table, hierarchies, requirements, max_suppression)
        leaves = np.stack([hierarchies[c.name].align(c)[c.codes] for c in table.quasi_identifiers])
        frequency, tuples = FrequencySet.of(table, leaves, fitted.columns)
        return cls(table, hierarchies, fitted, allowed, frequency, tuples)


def fitted_requirements(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    max_suppression: float | Decimal | str,
) -> tuple[Requirements, int]:
    """The requirements with what models must know of a table, and how many of its rows may be suppressed.

    Raises:
        ConfigurationError: A quasi-identifier has no hierarchy, there is none, MaxSup is no share, or a model certainly
            cannot be met.
        InputDataError: A hierarchy lacks values.
    """
    if not table.quasi_identifiers:
        raise ConfigurationError("The table has no quasi-identifiers; there is nothing to generalise.")
    for column in table.quasi_identifiers:
        if column.name not in hierarchies:
            raise ConfigurationError(
                f'Quasi-identifier "{column.name}" has no generalisation hierarchy; give one, or use mondrian, '
                "which needs none."
            )
    allowed = allowed_suppression(max_suppression, table.n_rows)
    fitted = requirements.fitted(table)
    reason = fitted.infeasible(table, allowed)
    if reason is not None:
        raise ConfigurationError(reason)
    return fitted, allowed


def no_solution(search: Search) -> ConfigurationError:
    """What to raise when even the top of the lattice fails."""
    return ConfigurationError(
        "Even with every quasi-identifier at its highest level the requirements fail for more than "
        f"{search.examiner.allowed} records: allow more suppression or weaken the models."
    )
