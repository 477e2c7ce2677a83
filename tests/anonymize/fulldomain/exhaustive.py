"""Examination of every node: slow, simple, and so the oracle of the other searches."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from anonymize.fulldomain.releasing import Suppressed, Suppression, recoding, release
from anonymize.fulldomain.search import Problem, no_solution
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
    """Releases the node of least loss of all satisfying ones; arguments and errors as for `optimal`."""
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    search = problem.search(loss)
    nodes = [node for node in search.lattice.nodes() if search.examine(node).satisfied]
    if not nodes:
        raise no_solution(search)
    found = recoding(problem, search, search.least_loss(nodes), "exhaustive", suppression)
    return release(problem, found, suppressed)
