"""Published tuples, and which original values each of their cells may cover: what every attack begins with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from anonymize.cells import SUPPRESSED, Interval, parse
from anonymize.columns import Column, number_of, text_of
from anonymize.covering import covered
from anonymize.grouping import group
from anonymize.hierarchies.hierarchy import Hierarchy
from link.errors import ConfigurationError

NO_HIERARCHIES: Final[Mapping[str, Hierarchy]] = MappingProxyType({})

_CELLS: Final = 1 << 23  # pairs of a target and a published tuple that are held at once


@dataclass(frozen=True, eq=False)
class PublishedTuples:
    """Distinct tuples of some published columns.

    Attributes:
        names: The columns.
        cells: By column, its distinct cells as text.
        codes: Shape (c, d): the cell of each tuple in each column, by its place in `cells`.
        sizes: Shape (c,): rows of each tuple.
        tuple_of: Shape (rows,): the tuple of each published row, −1 for suppressed rows.
    """

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tuple_of: NDArray[np.int64]

    @classmethod
    def of(cls, table: pa.Table, names: Sequence[str], suppressed: ArrayLike | None = None) -> PublishedTuples:
        """Reads a published table.

        Args:
            table: The published rows.
            names: The columns that the attacker knows of the targets.
            suppressed: Shape (rows,), boolean: published rows whose quasi-identifiers are suppressed. They are no
                tuple: nobody whose own cell is published is among them. None if there are none.

        Raises:
            ConfigurationError: A column is not published.
        """
        lacking = [name for name in names if name not in table.column_names]
        if lacking or not names:
            raise ConfigurationError(
                f'Column "{lacking[0]}" is not published; an attack needs published columns.'
                if lacking
                else "An attack needs at least one column that the attacker knows."
            )
        shown = np.ones(table.num_rows, np.bool_) if suppressed is None else ~np.asarray(suppressed, dtype=np.bool_)
        coded = [_coded(table.column(name)) for name in names]
        keys = [(codes[shown], len(cells)) for cells, codes in coded]
        labels, classes = group(keys) if shown.any() else (np.empty(0, np.int64), 0)
        first = np.zeros(classes, np.int64)
        first[labels[::-1]] = np.flatnonzero(shown)[::-1]
        tuple_of = np.full(table.num_rows, -1, np.int64)
        tuple_of[shown] = labels
        codes = np.stack([each[first] for _, each in coded], axis=1)
        return cls(
            tuple(names), tuple(cells for cells, _ in coded), codes, np.bincount(labels, minlength=classes), tuple_of
        )


@dataclass(frozen=True, eq=False)
class Matches:
    """A block of targets against all published tuples.

    Attributes:
        targets: Which distinct targets, as a range.
        matrix: Shape (targets of the block, c), 1 where the tuple covers the target, else 0.
    """

    targets: slice
    matrix: NDArray[np.float32]


def matches(
    published: PublishedTuples,
    columns: Sequence[Column],
    targets: NDArray[np.int64],
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
) -> Iterator[Matches]:
    """Which published tuples each target may be behind, in blocks of bounded size.

    Args:
        published: The tuples.
        columns: What the attacker knows, in the order of `published.names`.
        targets: Shape (u, d): the targets as codes of `columns`.
        hierarchies: Whose labels the cells of a column may bear.

    Yields:
        Blocks that cover all targets in order.

    Raises:
        InputDataError: A cell is neither a value, an interval, a set, a label of its hierarchy nor `*`.
    """
    tables = [
        coverage(cells, column, hierarchies.get(column.name))[codes].T
        for cells, column, codes in zip(published.cells, columns, published.codes.T, strict=True)
    ]  # by column, shape (values, c)
    packed = [np.packbits(table, axis=1) for table in tables]
    classes = len(published.sizes)
    step = max(1, _CELLS // max(classes, 1))
    for start in range(0, len(targets), step):
        block = targets[start : start + step]
        bits = np.full((len(block), -(-classes // 8)), 255, np.uint8)
        for place, table in enumerate(packed):
            bits &= table[block[:, place]]
        matrix = np.unpackbits(bits, axis=1, count=classes).astype(np.float32)
        yield Matches(slice(start, start + len(block)), matrix)


def coverage(cells: Sequence[str], column: Column, hierarchy: Hierarchy | None = None) -> NDArray[np.bool_]:
    """Which values of a column each published cell may cover.

    Values that the hierarchy lacks are covered by no label but `*`.

    Args:
        cells: Distinct published cells.
        column: With the values that are asked about, in its domain.
        hierarchy: Whose labels the cells may bear.

    Returns:
        Shape (cells, values of the domain), a byte each.

    Raises:
        InputDataError: A cell is neither a value, an interval, a set, a label of the hierarchy nor `*`.
    """
    found = np.zeros((len(cells), column.size), np.bool_)
    texts = {text: place for place, text in enumerate(column.texts)}
    leaves = np.full(column.size, -1, np.int32) if hierarchy is None else hierarchy.find(column)
    known = np.flatnonzero(leaves >= 0)
    leaf_of = leaves[known]
    labels = _labels(hierarchy)
    ends: list[tuple[int, float, float, bool]] = []
    for place, cell in enumerate(cells):
        if cell == SUPPRESSED:
            found[place] = True
        elif cell in texts or cell in labels:
            if cell in texts:
                found[place, texts[cell]] = True
            for codes, code in labels.get(cell, ()):
                found[place, known] |= codes[leaf_of] == code
        elif column.kind == "numeric" and (numbers := _numbers(cell)) is not None:
            ends.append((place, *numbers))
        else:
            found[place] = covered(cell, column)
    if ends:  # wide columns have thousands of intervals: these are found by their ends, all at once
        places, low, high, half_open = (np.array(each) for each in zip(*ends, strict=True))
        begin, end = np.searchsorted(column.numbers, low), np.searchsorted(column.numbers, high, side="right")
        end = np.where(half_open, np.searchsorted(column.numbers, high), end)
        position = np.arange(column.size)
        found[places] = (position >= begin[:, None]) & (position < end[:, None])
    return found


def _labels(hierarchy: Hierarchy | None) -> dict[str, list[tuple[NDArray[np.int32], int]]]:
    """Labels: at which levels each is, as the codes of that level, and with which code."""
    found: dict[str, list[tuple[NDArray[np.int32], int]]] = {}
    if hierarchy is not None:
        for codes, labels in zip(hierarchy.maps, hierarchy.labels, strict=True):
            for code, label in enumerate(labels):
                found.setdefault(label, []).append((codes, code))
    return found


def _numbers(cell: str) -> tuple[float, float, bool] | None:
    """Ends of an interval of numbers, or a number twice, and whether the upper end is left out; None of other cells."""
    parsed = parse(cell)
    try:
        if isinstance(parsed, Interval):
            return float(number_of(parsed.low)), float(number_of(parsed.high)), parsed.half_open
        return float(number_of(cell)), float(number_of(cell)), False
    except ValueError:
        return None


def _coded(column: pa.ChunkedArray) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Distinct cells as text, and the code of each row's cell."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = pc.dictionary_encode(plain, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # a table without rows has no chunk
        return (), np.empty(0, np.int64)
    cells = tuple("" if value is None else text_of(value) for value in encoded.dictionary.to_pylist())
    return cells, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
