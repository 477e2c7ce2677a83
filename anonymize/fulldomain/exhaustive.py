"""Examination of every node: slow, simple, and so the oracle of the other searches."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.releasing import Suppressed, Suppression, release
from anonymize.fulldomain.search import Problem, Search, no_solution
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import Release
from anonymize.tables import Table


def exhaustive(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
    suppression: Suppression = "row",
) -> Release:
    """Releases the node of least loss of all satisfying ones, after a look at every node of the lattice.

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
    search = problem.search(loss)
    nodes = all_satisfying(search)
    if not nodes:
        raise no_solution(search)
    return release(problem, search, search.least_loss(nodes), "exhaustive", suppressed, suppression)


def all_satisfying(search: Search) -> list[Node]:
    """Every node that can be released, in lexicographic order; nothing is inferred, each is looked at."""
    return [node for node in search.lattice.nodes() if search.examine(node).satisfied]
