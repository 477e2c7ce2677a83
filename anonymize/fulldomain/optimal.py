"""The node of least loss, found with few examinations.

A node's loss without suppression is known before any look at it and bounds its loss with suppression from below. So
only nodes whose bound is under the best loss so far matter, and none at or below one with too many violators does.

A greedy descent from the top gives a good first solution. Then the undecided nodes are visited in the order of falling
bounds: these lie near the border between failing and satisfying nodes, where one failure condemns most others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.releasing import Recoding, Suppressed, Suppression, recoding, release
from anonymize.fulldomain.search import CountedProblem, Problem, Search, no_solution
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import Release
from anonymize.tables import Table

_BLOCK = 4096
_SLACK = 1e-12  # nodes whose bound ties with the best loss are still looked at: ties go to the least node


def optimal(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
    suppression: Suppression = "row",
) -> Release:
    """Releases the node of least loss of all satisfying ones; of equal losses the lexicographically least.

    Args:
        table: The input.
        hierarchies: One for each quasi-identifier.
        requirements: Models that every class must meet.
        max_suppression: Share of the rows that may be suppressed.
        loss: What is minimised, see `objectives.objective`.
        suppressed: What becomes of suppressed rows, see `releasing.release`.
        suppression: Of whole rows or of single cells, see `releasing.release`.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.
    """
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    return release(problem, recode(problem, loss, suppression), suppressed)


def recode(problem: CountedProblem, loss: str, suppression: Suppression) -> Recoding:
    """What becomes of each distinct tuple, see `optimal`.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
    """
    search = problem.search(loss)
    node = least_loss_node(search)
    if node is None:
        raise no_solution(search)
    return recoding(problem, search, node, "optimal", suppression)


def least_loss_node(search: Search) -> Node | None:
    """The satisfying node of least loss; None where no node satisfies."""
    descent = _Descent(search)
    descent.from_top()
    descent.rest()
    return descent.node


class _Descent:
    """The best node so far, and the bounds that are known by now."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.bounds = search.objective.bounds.copy()
        self.best: tuple[float, Node] | None = None

    @property
    def node(self) -> Node | None:
        return None if self.best is None else self.best[1]

    def from_top(self) -> None:
        """Goes down as long as some specialisation satisfies, to that of least bound."""
        lattice = self.search.lattice
        node: Node | None = lattice.top
        if not self.visit(lattice.top):
            return
        while node is not None:
            below = sorted(lattice.specialisations(node), key=lambda lower: (self.bounds[lower], lower))
            node = next((lower for lower in below if self.undecided(lower) and self.visit(lower)), None)

    def rest(self) -> None:
        """Visits every node that may still be better."""
        search = self.search
        limit = math.inf if self.best is None else self.best[0] + _SLACK
        candidates = np.flatnonzero(~search.tags.hopeless & ~search.tags.examined & (self.bounds <= limit))
        bounds, heights = self.bounds.ravel()[candidates], search.lattice.heights.ravel()[candidates]
        candidates = candidates[np.lexsort((-heights, -bounds))]
        hopeless = search.tags.hopeless.ravel()  # a view: what a block condemns is left out of the next
        for start in range(0, len(candidates), _BLOCK):
            block = candidates[start : start + _BLOCK]
            for flat in block[~hopeless[block]].tolist():
                node = tuple(map(int, np.unravel_index(flat, search.lattice.shape)))
                if self.undecided(node) and (self.best is None or search.rank(self.bounds[node], node) < self.best):
                    self.visit(node)

    def undecided(self, node: Node) -> bool:
        """Whether an examination of the node could help."""
        return not (self.search.tags.hopeless[node] or self.search.tags.examined[node])

    def visit(self, node: Node) -> bool:
        """Examines a node and keeps it if it is the best; whether it satisfies."""
        verdict = self.search.examine(node)
        floor = self.search.objective.floor(node, verdict)
        if floor > self.bounds[node] + _SLACK:
            above = self.search.lattice.above(node)
            np.maximum(self.bounds[above], floor, out=self.bounds[above])
        if not verdict.satisfied:
            return False
        ranked = self.search.rank(self.search.objective.loss(node, verdict), node)
        if self.best is None or ranked < self.best:
            self.best = ranked
        return True
