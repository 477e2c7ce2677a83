"""From a node to a release: recoding, and what becomes of violating rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.cell_suppression import suppressed_cells
from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.search import Problem, Search
from anonymize.grouping import Histograms
from anonymize.release import MASKED, Release, check_shown_classes, publish, recoded_cells
from link.errors import ConfigurationError

Suppressed = Literal["drop", "blank", "keep"]
Suppression = Literal["row", "cell"]

_NO_DETAILS: Final[Mapping[str, object]] = {}


def release(
    problem: Problem,
    search: Search,
    node: Node,
    algorithm: str,
    suppressed: Suppressed,
    suppression: Suppression,
    details: Mapping[str, object] = _NO_DETAILS,
) -> Release:
    """Recodes a table at a node and suppresses what violates there.

    Args:
        problem: The table and its requirements.
        search: The search that found the node.
        node: Level of each quasi-identifier.
        algorithm: Its name.
        suppressed: What becomes of suppressed rows. "drop" leaves them out. "blank" publishes them without
            quasi-identifiers and sensitive values. "keep" publishes the sensitive values; that is allowed only where
            the suppressed rows meet the requirements as a class of their own, since a person who is not found in
            another class must be among them.
        suppression: "row" suppresses violating rows. "cell" suppresses as few of their cells as let them form classes;
            rows for which that fails are suppressed.
        details: Further details of the release.

    Returns:
        The release; `details["loss"]` is what the search minimised, with whole rows suppressed.

    Raises:
        ConfigurationError: Suppressed rows must not be kept, or an option is unknown.
    """
    _check("suppressed", suppressed, get_args(Suppressed))
    _check("suppression", suppression, get_args(Suppression))
    verdict = search.verdict(node)
    bad = ~verdict.good[verdict.labels]
    levels = np.broadcast_to(np.array(node, np.int8), (len(bad), len(node))).copy()
    levels[bad] = MASKED
    if suppression == "cell" and bad.any():
        cells = suppressed_cells(search.frequency.among(bad), search.hierarchies, search.examiner, node)
        levels[bad] = np.where(cells, MASKED, np.array(node, np.int8))
    known = {"loss": search.objective.loss(node, verdict), **details}
    names = [column.name for column in problem.table.quasi_identifiers]
    return release_levels(
        problem, levels, algorithm, suppressed, search.finished(), known, dict(zip(names, node, strict=True))
    )


def release_levels(
    problem: Problem,
    levels: NDArray[np.int8],
    algorithm: str,
    suppressed: Suppressed,
    statistics: Mapping[str, int | float],
    details: Mapping[str, object],
    node: Mapping[str, int] | None = None,
) -> Release:
    """Recodes each distinct tuple at levels of its own.

    Args:
        problem: The table and its requirements.
        levels: Level of each cell of each tuple, `MASKED` where suppressed, shape (u, d). A tuple without any cell is
            suppressed.
        algorithm: Its name.
        suppressed: What becomes of suppressed rows, see `release`.
        statistics: Of the search.
        details: Of the release.
        node: Level of each quasi-identifier, where there is one for all rows.

    Raises:
        ConfigurationError: Suppressed rows must not be kept.
    """
    table = problem.table
    out = (levels == MASKED).all(axis=1)[problem.tuples]
    if suppressed == "keep":
        _check_kept(problem, out)
    rows = np.flatnonzero(~out) if suppressed == "drop" else np.arange(table.n_rows)
    cells = recoded_cells(table, problem.hierarchies, levels[problem.tuples[rows]], rows)
    blanked = out[rows] if suppressed == "blank" else np.zeros(len(rows), bool)
    classes = cells.classes(~blanked)
    check_shown_classes(table, problem.requirements, rows, classes)
    loss = np.ones((table.n_rows, levels.shape[1]))
    loss[rows] = cells.loss
    return Release(
        algorithm,
        publish(table, cells.columns, rows, blanked),
        rows,
        classes,
        np.flatnonzero(out),
        node,
        loss,
        statistics,
        details,
    )


def _check_kept(problem: Problem, out: NDArray[np.bool_]) -> None:
    """Refuses to publish sensitive values of suppressed rows that are no class by themselves."""
    n_out = int(out.sum())
    if n_out == 0:
        return
    columns = [problem.table.columns[name] for name in problem.frequency.sensitive]
    kept = Histograms.of(np.where(out, 0, 1), 2, columns)
    if not problem.requirements.satisfied(kept)[0]:
        raise ConfigurationError(
            f"The {n_out} suppressed rows do not meet the requirements as a class, so their sensitive values cannot be "
            'kept: take suppressed = "drop" or "blank".'
        )


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f'{name} is "{value}"; it must be one of {", ".join(allowed)}.')
