"""Condensation of a whole table: its groups are formed from the records, which are then thrown away.

Source: Aggarwal and Yu, "A condensation approach to privacy preserving data mining", EDBT 2004, section 2; Aggarwal,
"Data Mining", 2015, section 20.3.1.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.clustering.inputs import check_k
from anonymize.clustering.mdav import mdav_groups
from anonymize.clustering.remaining import Remaining
from anonymize.clustering.space import KINDS, Scaling, Space
from anonymize.columns import Column
from anonymize.condensation.moments import Moments
from anonymize.condensation.synthesis import synthesise
from anonymize.grouping import group
from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Grouping = Literal["random", "mdav"]


def condense(
    table: Table,
    k: int,
    *,
    rng: Randomness,
    by: Sequence[str] = (),
    factor: int = 1,
    grouping: Grouping = "random",
    scaling: Scaling = "deviation",
) -> Release:
    """Publishes synthetic records that have the moments of groups of k or more records.

    Quasi-identifiers and sensitive columns are treated alike, as in the source: whatever an attacker may know is drawn
    anew. So are insensitive columns of numbers; other insensitive columns are left out, since they belong to no
    synthetic record.

    Args:
        table: Numeric, date and ordinal columns are condensed.
        k: Least number of records of a group.
        rng: For the groups and the records.
        by: Columns of other kinds: groups are formed among records that agree in all of them, and synthetic records
            keep these values. Records whose combination fewer than k records have are suppressed.
        factor: Synthetic records for each record.
        grouping: "random" as in the source: k records nearest to a random one; "mdav" makes tighter groups.
        scaling: The units of distances, see `Space`.

    Returns:
        Synthetic records in random order. The details hold the moments of the groups, of (x − origin) / unit in the
        order of `columns`: `sizes`, `sums`, `products`, `origins` and `units`.

    Raises:
        ConfigurationError: A parameter or a column does not suit; the sentence says what would.
    """
    check_k(k, table.n_rows)
    if factor < 1:
        raise ConfigurationError(
            f"factor is {factor}, but each record needs a synthetic one at least; choose 1 or more."
        )
    if grouping not in get_args(Grouping):
        raise ConfigurationError(f'grouping is "{grouping}"; it must be one of {", ".join(get_args(Grouping))}.')
    condensed, left_out = _columns(table, by)
    space = Space.of(condensed, scaling)
    fixed = [table.columns[name] for name in by]
    cells, n_cells = group([(column.codes, column.size) for column in fixed], table.n_rows)
    kept = np.flatnonzero(np.bincount(cells)[cells] >= k)
    if not len(kept):
        raise ConfigurationError(
            f"No combination of the columns {', '.join(by)} has {k} records; condense by fewer columns, or "
            "choose a smaller k."
        )
    labels, groups = _groups(space.points[kept], cells[kept], n_cells, k, grouping, rng)
    moments = Moments.of(space.points[kept], labels, groups)
    points, drawn_from = synthesise(moments, factor, rng)
    order = rng.permutation(len(points))
    representative = np.empty(groups, np.int64)
    representative[labels] = kept
    source = representative[drawn_from[order]]
    shown = space.cells(points[order])
    for name in by:
        shown[name] = table.data.column(name).take(pa.array(source))
    return Release(
        algorithm="condensation",
        table=pa.table({name: shown[name] for name in table.data.column_names if name in shown}),
        rows=None,
        classes=None,
        suppressed=np.setdiff1d(np.arange(table.n_rows), kept),
        statistics={"groups": groups, "smallest": int(moments.counts.min()), "largest": int(moments.counts.max())},
        details={
            "k": k,
            "factor": factor,
            "grouping": grouping,
            "scaling": scaling,
            "columns": tuple(column.name for column in condensed),
            "by": tuple(by),
            "left_out": left_out,
            "origins": space.origins,
            "units": space.units,
            "sizes": moments.counts,
            "sums": moments.sums,
            "products": moments.products,
        },
    )


def random_groups(points: Floats, k: int, rng: Randomness) -> Labels:
    """Groups of k records: a random one and the k − 1 nearest to it; the last, fewer than k, join the nearest means.

    Args:
        points: Shape (n, d), n ≥ k.
        k: Records of a group.
        rng: For the first record of each group.

    Returns:
        The group of each point; shape (n,). The expected work is O(n²d / k).
    """
    labels = np.empty(len(points), np.int64)
    remaining = Remaining(points)
    groups = 0
    while remaining.count >= k:
        labels[remaining.take_nearest(remaining.nth(rng.below(remaining.count)), k)] = groups
        groups += 1
    rest = remaining.rows()
    if len(rest):
        grouped = np.setdiff1d(np.arange(len(points)), rest)
        means = Moments.of(points[grouped], labels[grouped], groups).means
        distances = np.square(points[rest, None, :] - means).sum(axis=2)
        labels[rest] = distances.argmin(axis=1)
    return labels


def _columns(table: Table, by: Sequence[str]) -> tuple[list[Column], tuple[str, ...]]:
    """The columns to condense, and the names of those left out."""
    for name in by:
        if table.roles.of(table.column(name).name) == "identifiers":
            raise ConfigurationError(f'Column "{name}" is an identifier and is never published; take it out of `by`.')
    condensed, left_out = [], []
    for name, column in table.columns.items():
        if name in table.roles.identifiers or name in by:
            continue
        if column.kind in KINDS:
            condensed.append(column)
        elif name in table.roles.insensitive:
            left_out.append(name)
        else:
            raise ConfigurationError(
                f'Column "{name}" is of kind {column.kind} and has no moments; name it in `by`, '
                "declare it ordinal, or make it an identifier."
            )
    if not condensed:
        raise ConfigurationError("The table has no numeric, date or ordinal column, so there is nothing to condense.")
    return condensed, tuple(left_out)


def _groups(
    points: Floats, cells: Labels, n_cells: int, k: int, grouping: Grouping, rng: Randomness
) -> tuple[Labels, int]:
    """Groups within each cell of at least k points, numbered from 0; and how many there are."""
    labels, groups = np.empty(len(points), np.int64), 0
    order = np.argsort(cells, kind="stable")
    bounds = np.searchsorted(cells[order], np.arange(n_cells + 1))
    for cell in range(n_cells):
        rows = order[bounds[cell] : bounds[cell + 1]]
        if not len(rows):
            continue
        found = mdav_groups(points[rows], k) if grouping == "mdav" else random_groups(points[rows], k, rng)
        labels[rows] = groups + found
        groups += int(found.max()) + 1
    return labels, groups
