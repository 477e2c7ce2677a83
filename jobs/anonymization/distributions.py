"""How a column is distributed before and after: what the plots of the report show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.columns import Column, text_of
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.release import Release
from anonymize.tables import Table
from anonymize.utility.queries import cell_shares

Floats = NDArray[np.float64]

_BINS: Final = 20
_CLASS_SIZES: Final = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)


@dataclass(frozen=True)
class Bar:
    """One place of a plot.

    Attributes:
        label: What is counted there.
        before: Share of the input's rows.
        after: Share of the published rows; those of a cell that covers several values count evenly for each.
    """

    label: str
    before: float
    after: float


@dataclass(frozen=True)
class Distribution:
    """A column before and after.

    Attributes:
        column: Its name.
        role: What it is to privacy.
        bars: In the order of its values; of texts the most frequent first.
        distance: Total variation between the two, in [0, 1]: the share of rows that seems to have moved.
        distinct: Values before, and cells after.
        loss: Mean loss of its cells; None where none is measured.
    """

    column: str
    role: str
    bars: tuple[Bar, ...]
    distance: float
    distinct: tuple[int, int]
    loss: float | None


def distributions(table: Table, release: Release, hierarchies: Mapping[str, Hierarchy]) -> list[Distribution]:
    """Of every quasi-identifier and sensitive column that is published."""
    found = []
    for name in (*table.roles.quasi_identifiers, *table.roles.sensitive):
        if name not in release.table.column_names:
            continue
        column = table.columns[name]
        cells = release.table.column(name)
        labels, masks = _bins(column)
        before = masks @ column.counts / table.n_rows
        after = _after(column, cells, masks, hierarchies.get(name))
        quasi = name in table.roles.quasi_identifiers
        loss = None
        if quasi and release.cell_loss is not None:
            loss = float(release.cell_loss[:, table.roles.quasi_identifiers.index(name)].mean())
        found.append(
            Distribution(
                name,
                "quasi-identifier" if quasi else "sensitive",
                tuple(Bar(*bar) for bar in zip(labels, before.tolist(), after.tolist(), strict=True)),
                float(np.abs(before - after).sum() / 2),
                (int(np.count_nonzero(column.counts)), len(pc.unique(cells))),
                loss,
            )
        )
    return found


def class_sizes(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[Bar]:
    """Shares of rows in classes of a size, of the input and of the release.

    Args:
        before: Rows of each class of equal quasi-identifiers in the input.
        after: Rows of each published class.
    """
    edges = [*_CLASS_SIZES, np.inf]
    shares = [_rows_by_size(sizes, edges) for sizes in (before, after)]
    labels = [
        f"{low:,}" if high == low + 1 else f"{low:,} or more" if high == np.inf else f"{low:,}–{int(high) - 1:,}"
        for low, high in pairwise(edges)
    ]
    bars = [Bar(*bar) for bar in zip(labels, shares[0].tolist(), shares[1].tolist(), strict=True)]
    last = max((place for place, bar in enumerate(bars) if bar.before or bar.after), default=0)
    return bars[: last + 1]


def _rows_by_size(sizes: NDArray[np.int64], edges: Sequence[float]) -> Floats:
    rows, _ = np.histogram(sizes, [*edges[:-1], np.iinfo(np.int64).max], weights=sizes)
    found: Floats = rows / max(int(sizes.sum()), 1)
    return found


def _bins(column: Column) -> tuple[list[str], NDArray[np.bool_]]:
    """Labels, and which values of the domain each bin holds, shape (bins, m)."""
    if column.kind in ("numeric", "date") and column.size > _BINS:
        numbers = column.numbers
        span = float(numbers[-1] - numbers[0])
        whole = all(number.is_integer() for number in numbers.tolist())
        width = float(np.ceil((span + 1) / _BINS)) if whole else span / _BINS  # bins of equally many whole numbers
        place = np.minimum((numbers - numbers[0]) // width, _BINS - 1)
        held = [np.flatnonzero(place == bin_) for bin_ in range(_BINS)]
        held = [codes for codes in held if len(codes)]
        labels = [_range(column.domain[codes[0]], column.domain[codes[-1]]) for codes in held]
    elif column.is_ordered or column.size <= _BINS:
        order = np.arange(column.size) if column.is_ordered else np.argsort(-column.counts, kind="stable")
        held = [order[place : place + 1] for place in range(column.size)]
        labels = [column.texts[codes[0]] for codes in held]
        if column.size > 2 * _BINS:
            held = np.array_split(order, _BINS)
            labels = [f"{column.texts[codes[0]]} … {column.texts[codes[-1]]}" for codes in held]
    else:
        order = np.argsort(-column.counts, kind="stable")
        held = [order[place : place + 1] for place in range(_BINS - 1)] + [order[_BINS - 1 :]]
        labels = [column.texts[codes[0]] for codes in held[:-1]] + [f"{len(held[-1])} others"]
    masks = np.zeros((len(held), column.size), bool)
    for row, codes in enumerate(held):
        masks[row, codes] = True
    return labels, masks


def _range(low: object, high: object) -> str:
    first, last = text_of(low), text_of(high)  # type: ignore[arg-type]  # values of a domain
    return first if first == last else f"{first}–{last}"


def _after(column: Column, cells: pa.ChunkedArray, masks: NDArray[np.bool_], hierarchy: Hierarchy | None) -> Floats:
    """Share of the published rows in each bin."""
    present = cells.drop_null()
    if column.kind in ("numeric", "date") and not pa.types.is_string(present.type):
        counts = _of_numbers(column, present, masks)
    else:
        counted = pc.value_counts(present)
        texts = ["" if value is None else text_of(value) for value in counted.field("values").to_pylist()]
        counts = cell_shares(texts, column, masks, hierarchy) @ counted.field("counts").to_numpy()
    return counts / max(len(cells), 1)


def _of_numbers(column: Column, cells: pa.ChunkedArray, masks: NDArray[np.bool_]) -> Floats:
    """Rows by the bin whose values are nearest; centres and synthetic records have values that the input has not."""
    if column.kind == "date":
        numbers = np.array([day.toordinal() for day in cells.to_pylist() if isinstance(day, date)], np.float64)
    else:
        numbers = cells.to_numpy().astype(np.float64)
    held = [column.numbers[mask] for mask in masks]
    between = [(below[-1] + above[0]) / 2 for below, above in pairwise(held)]
    found: Floats = np.bincount(np.searchsorted(between, numbers), minlength=len(held)).astype(np.float64)
    return found
