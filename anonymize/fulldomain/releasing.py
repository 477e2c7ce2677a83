"""From a node to a release: recoding, and what becomes of violating rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.cell_suppression import suppressed_cells
from anonymize.fulldomain.lattice import Node
from anonymize.fulldomain.search import CountedProblem, Problem, Search
from anonymize.release import MASKED, Release, check_shown_classes, publish, recoded_cells
from link.errors import ConfigurationError

Suppressed = Literal["drop", "blank", "keep"]
Suppression = Literal["row", "cell"]

_NO_DETAILS: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, eq=False)
class Recoding:
    """What becomes of each distinct tuple: all that an algorithm decides.

    Attributes:
        algorithm: Its name.
        levels: Level of each cell of each tuple, `MASKED` where suppressed, shape (u, d). A tuple without any cell is
            suppressed.
        statistics: Of the search.
        details: Of the release.
        node: Level of each quasi-identifier, where there is one for all rows.
    """

    algorithm: str
    levels: NDArray[np.int8]
    statistics: Mapping[str, int | float]
    details: Mapping[str, object]
    node: Mapping[str, int] | None = None

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Which tuples are suppressed, shape (u,)."""
        return np.asarray((self.levels == MASKED).all(axis=1), bool)


def recoding(
    problem: CountedProblem,
    search: Search,
    node: Node,
    algorithm: str,
    suppression: Suppression,
    details: Mapping[str, object] = _NO_DETAILS,
) -> Recoding:
    """Recodes tuples at a node and suppresses what violates there.

    Args:
        problem: The tuples and their requirements.
        search: The search that found the node.
        node: Level of each quasi-identifier.
        algorithm: Its name.
        suppression: "row" suppresses violating rows. "cell" suppresses as few of their cells as let them form classes;
            rows for which that fails are suppressed.
        details: Further details of the release.

    Returns:
        The recoding; `details["loss"]` is what the search minimised, with whole rows suppressed.

    Raises:
        ConfigurationError: `suppression` is unknown.
    """
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
    return Recoding(algorithm, levels, search.finished(), known, dict(zip(names, node, strict=True)))


def release(problem: Problem, found: Recoding, suppressed: Suppressed) -> Release:
    """The rows of a table in memory, recoded.

    Args:
        problem: The table and its requirements.
        found: What becomes of its tuples.
        suppressed: What becomes of suppressed rows. "drop" leaves them out. "blank" publishes them without
            quasi-identifiers and sensitive values. "keep" publishes the sensitive values; that is allowed only where
            the suppressed rows meet the requirements as a class of their own, since a person who is not found in
            another class must be among them.

    Raises:
        ConfigurationError: Suppressed rows must not be kept, or the option is unknown.
    """
    check_suppressed(problem, found, suppressed)
    table = problem.table
    out = found.suppressed[problem.tuples]
    rows = np.flatnonzero(~out) if suppressed == "drop" else np.arange(table.n_rows)
    cells = recoded_cells(table, problem.hierarchies, found.levels[problem.tuples[rows]], rows)
    blanked = out[rows] if suppressed == "blank" else np.zeros(len(rows), bool)
    classes = cells.classes(~blanked)
    check_shown_classes(table, problem.requirements, rows, classes)
    loss = np.ones((table.n_rows, found.levels.shape[1]))
    loss[rows] = cells.loss
    return Release(
        found.algorithm,
        publish(table, cells.columns, rows, blanked),
        rows,
        classes,
        np.flatnonzero(out),
        found.node,
        loss,
        found.statistics,
        found.details,
    )


def check_suppressed(problem: CountedProblem, found: Recoding, suppressed: Suppressed) -> None:
    """Refuses an unknown option, and to publish sensitive values of suppressed rows that are no class by themselves.

    Raises:
        ConfigurationError: It does.
    """
    _check("suppressed", suppressed, get_args(Suppressed))
    out = found.suppressed
    if suppressed != "keep" or not out.any():
        return
    among = problem.frequency.among(out)
    kept = among.histograms(np.zeros(len(among.weights), np.int64), np.array([among.records]))
    if not problem.requirements.satisfied(kept)[0]:
        raise ConfigurationError(
            f"The {among.records} suppressed rows do not meet the requirements as a class, so their sensitive values "
            'cannot be kept: take suppressed = "drop" or "blank".'
        )


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f'{name} is "{value}"; it must be one of {", ".join(allowed)}.')
