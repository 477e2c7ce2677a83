"""Datafly: a greedy baseline that generalises the column with most distinct values until few records violate.

Source: Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", 2002, section 4.1.
"""

from __future__ import annotations

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


def datafly(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
    suppression: Suppression = "row",
) -> Release:
    """Releases the first satisfying node on the greedy path; it need not be minimal, nor of least loss.

    Arguments are those of `optimal`; `loss` is reported in `details["loss"]`, and the path does not depend on it.

    Returns:
        The release; `details["path"]` holds the nodes passed.

    Raises:
        ConfigurationError: Even the top fails, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> release = datafly(table, hierarchies, Requirements((KAnonymity(2),)))
        >>> release.node, release.table["age"].to_pylist()[:3]
        ({'age': 1}, ['[30, 39]', '[30, 39]', '[40, 49]'])
    """
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    return release(problem, recode(problem, loss, suppression), suppressed)


def recode(problem: CountedProblem, loss: str, suppression: Suppression) -> Recoding:
    """What becomes of each distinct tuple, see `datafly`.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
    """
    search = problem.search(loss)
    path = greedy_path(search)
    return recoding(problem, search, path[-1], "datafly", suppression, {"path": path})


def greedy_path(search: Search) -> list[Node]:
    """The nodes from the bottom to the first that satisfies, each one level higher than the last.

    The column that is raised is the one with most distinct values (ties: the first) of those below their top.

    Raises:
        ConfigurationError: Even the top fails.
    """
    node = search.lattice.bottom
    path = [node]
    while not search.look(node).satisfied:
        distinct = [
            len(np.unique(hierarchy.maps[level][leaves])) if level < hierarchy.height else 0
            for hierarchy, level, leaves in zip(search.hierarchies, node, search.frequency.leaves, strict=True)
        ]
        if not any(distinct):
            raise no_solution(search)
        raised = int(np.argmax(distinct))
        node = (*node[:raised], node[raised] + 1, *node[raised + 1 :])
        path.append(node)
    return path
