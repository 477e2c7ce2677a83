"""Incognito: all satisfying nodes, by ever larger subsets of the quasi-identifiers.

If a table satisfies at a node, it satisfies for every subset of the quasi-identifiers at the same levels, since fewer
columns only merge classes (subset property). So a node is a candidate only if all its subsets of one column less
satisfy, and most nodes are never looked at.

The nodes of a subset of columns are kept as an array over its sublattice. Seen so, the paper's join of two sets of
nodes of i columns and its prune step are one conjunction: a candidate of i + 1 columns is one that satisfies in each
subset of i columns, each broadcast along the column that it lacks.

Source: LeFevre, DeWitt and Ramakrishnan, "Incognito: efficient full-domain k-anonymity", SIGMOD 2005, section 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.examination import Verdict
from anonymize.fulldomain.frequency import FrequencySet
from anonymize.fulldomain.lattice import Lattice, Node
from anonymize.fulldomain.releasing import Recoding, Suppressed, Suppression, recoding, release
from anonymize.fulldomain.search import CountedProblem, Problem, Search, no_solution
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.release import Release
from anonymize.tables import Table

Columns = tuple[int, ...]


def incognito(
    table: Table,
    hierarchies: Mapping[str, Hierarchy],
    requirements: Requirements,
    *,
    max_suppression: float | Decimal | str = 0.0,
    loss: str = "gcp",
    suppressed: Suppressed = "drop",
    suppression: Suppression = "row",
) -> Release:
    """Finds every satisfying node and releases the one of least loss.

    Arguments are those of `optimal`; `loss` chooses one of the nodes.

    Returns:
        The release; `details["minimal_nodes"]` holds the satisfying nodes of which no specialisation satisfies.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> incognito(table, hierarchies, Requirements((KAnonymity(2),))).details["minimal_nodes"]
        [(1,)]
    """
    problem = Problem.of(table, hierarchies, requirements, max_suppression)
    return release(problem, recode(problem, loss, suppression), suppressed)


def recode(problem: CountedProblem, loss: str, suppression: Suppression) -> Recoding:
    """What becomes of each distinct tuple, see `incognito`.

    Raises:
        ConfigurationError: No node satisfies, or a parameter is wrong.
    """
    search = problem.search(loss)
    satisfying = full_answer(search)
    if not satisfying.any():
        raise no_solution(search)
    minimal = minimal_nodes(search.lattice, satisfying)
    # Without suppression, losses only rise towards the top: the best node is a minimal one.
    nodes = minimal if problem.allowed == 0 and search.examiner.monotone else _nodes(satisfying)
    best = search.least_loss(nodes)
    return recoding(problem, search, best, "incognito", suppression, {"minimal_nodes": minimal})


def full_answer(search: Search) -> NDArray[np.bool_]:
    """Which nodes satisfy, in the lattice's shape.

    Models that are not monotone (with suppression: entropy l-diversity, say) take part only in the last step, where
    each node left by the others is looked at.
    """
    d = len(search.hierarchies)
    answers: dict[Columns, NDArray[np.bool_]] = {}
    for size in range(1, d + 1):
        answers = {
            columns: _search_graph(search, columns, _candidates(search, columns, answers))
            for columns in itertools.combinations(range(d), size)
        }
    return answers[tuple(range(d))]


def minimal_nodes(lattice: Lattice, satisfying: NDArray[np.bool_]) -> list[Node]:
    """The satisfying nodes that have no satisfying specialisation, in lexicographic order."""
    below = np.zeros(lattice.shape, bool)  # whether a proper specialisation satisfies
    reached = satisfying.copy()
    for axis in range(len(lattice.shape)):
        lower, upper = _slices(axis, slice(None, -1)), _slices(axis, slice(1, None))
        below[upper] |= np.logical_or.accumulate(reached, axis=axis)[lower]
        reached = np.logical_or.accumulate(reached, axis=axis)
    return _nodes(satisfying & ~below)


def _candidates(search: Search, columns: Columns, answers: Mapping[Columns, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Join and prune: nodes of some columns that satisfy in every subset of one column less."""
    shape = tuple(search.lattice.shape[column] for column in columns)
    candidates = np.ones(shape, bool)
    if len(columns) > 1:
        for axis in range(len(columns)):
            candidates &= np.expand_dims(answers[columns[:axis] + columns[axis + 1 :]], axis)
    return candidates


def _search_graph(search: Search, columns: Columns, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Breadth-first search of the candidate nodes of some columns, from the roots upwards.

    Returns:
        The satisfying candidates, in the sublattice's shape.
    """
    lattice = Lattice([search.hierarchies[column].height for column in columns])
    last = len(columns) == len(search.hierarchies)
    satisfying = np.zeros(lattice.shape, bool)
    inferring = search.examiner.monotone or not last
    previous: dict[Node, FrequencySet] = {}
    heights = lattice.heights[candidates]
    nodes = np.argwhere(candidates)
    for height in np.unique(heights).tolist():
        current: dict[Node, FrequencySet] = {}
        for node in map(tuple, nodes[heights == height].tolist()):
            if satisfying[node]:
                continue
            specialisation = next((lower for lower in lattice.specialisations(node) if lower in previous), None)
            search.statistics.rolled_up += specialisation is not None
            frequency = search.frequency if specialisation is None else previous[specialisation]
            verdict = _examine(search, frequency, columns, node, last=last)
            if verdict.satisfied:
                satisfying[lattice.above(node) if inferring else node] = True
            if not (verdict.satisfied and inferring):
                current[node] = frequency.rolled_up(verdict.labels, len(verdict.sizes))
        previous = current
    return satisfying & candidates


def _examine(search: Search, frequency: FrequencySet, columns: Columns, node: Node, *, last: bool) -> Verdict:
    labels, sizes = search.recoder.classes(frequency, node, columns)
    verdict = search.examiner.examine(frequency, labels, sizes, prune_only=not last)
    search.statistics.checked += 1
    if last:
        search.record(node, verdict)
    return verdict


def _nodes(chosen: NDArray[np.bool_]) -> list[Node]:
    return [tuple(node) for node in np.argwhere(chosen).tolist()]


def _slices(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)
