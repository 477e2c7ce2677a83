"""Samarati's algorithm: binary search for the least height with a node that satisfies.

Source: Samarati, "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001, section 5 (AG-TS).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.releasing import Recoding, Suppressed, Suppression, recoding, release
from anonymize.fulldomain.search import CountedProblem, Problem, Search, no_solution
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import Release
from anonymize.tables import Table


def samarati(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
    suppression: Suppression = "row",
) -> Release:
    """Releases the node of least loss among the satisfying nodes of least height.

    Arguments are those of `optimal`; `loss` chooses one of those nodes.

    Returns:
        The release; `details["minimal_nodes"]` holds all satisfying nodes of least height.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> samarati(table, hierarchies, Requirements((KAnonymity(2),))).node
        {'age': 1}
    """
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    return release(problem, recode(problem, loss, suppression), suppressed)


def recode(problem: CountedProblem, loss: str, suppression: Suppression) -> Recoding:
    """What becomes of each distinct tuple, see `samarati`.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
    """
    search = problem.search(loss)
    nodes = least_height_nodes(search)
    return recoding(problem, search, search.least_loss(nodes), "samarati", suppression, {"minimal_nodes": nodes})


def least_height_nodes(search: Search) -> list[Node]:
    """All satisfying nodes of the least height that has one, in lexicographic order.

    Whether some node of a height satisfies is monotone in the height if the models are monotone. Where they are not
    (entropy l-diversity with suppression, say), the same holds for nodes that are not hopeless: the least height with
    one of these is found by bisection, and from there heights are searched upwards.

    Raises:
        ConfigurationError: No node satisfies.
    """
    lattice = search.lattice
    if search.is_hopeless(lattice.top):
        raise no_solution(search)
    low, high = 0, sum(lattice.top)
    while low < high:
        middle = (low + high) // 2
        if any(not search.is_hopeless(node) for node in lattice.of_height(middle)):
            high = middle
        else:
            low = middle + 1
    for height in range(low, sum(lattice.top) + 1):
        nodes = [node for node in lattice.of_height(height) if search.satisfies(node)]
        if nodes:
            return nodes
    raise no_solution(search)
