"""Distinct rows with their numbers, in order: in memory while they are few, else in sorted runs on the disk.

The runs are merged as in Knuth, "The art of computer programming" 3, section 5.4.1: some rows of each run are held, and
what no later row can precede is given.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.fulldomain.frequency import representatives
from anonymize.grouping import group
from anonymize.release import plain, unsigned_zeros
from link.errors import ResourceError

Counts = NDArray[np.int64]

MOST_ROWS: Final = 1 << 19  # that are held before they are merged
HELD_ROWS: Final = 1 << 19  # of all runs together while these are merged
_BATCH_ROWS: Final = 1 << 10  # that are read of a run at once: runs hold a few of these each
MOST_RUNS: Final = 256  # that are merged at once
_COUNT: Final = "rows"


class CountedRows:
    """How many rows are equal, of a table that comes in blocks.

    Args:
        scratch: A folder for runs; they are removed with it.
        most: Rows that are held before they are merged.
        at_once: Runs that are merged at once; more take several passes.
    """

    def __init__(self, scratch: Path, most: int = MOST_ROWS, at_once: int = MOST_RUNS) -> None:
        self._scratch, self._most, self._at_once = scratch, most, at_once
        self._held: list[tuple[pa.Table, Counts]] = []
        self._runs: list[Path] = []
        self._names: list[str] = []

    def add(self, rows: pa.Table) -> None:
        """Counts the rows of a block; dictionaries must not repeat values."""
        if not rows.num_rows:
            return
        self._held.append(_distinct(unsigned_zeros(rows), np.ones(rows.num_rows, np.int64))[:2])
        if sum(table.num_rows for table, _ in self._held) > self._most:
            table, counts = self._merged()
            if table.num_rows > self._most // 2:
                self._spill(table, counts)
            else:
                self._held = [(table, counts)]

    def sorted(self) -> Iterator[tuple[pa.Table, Counts]]:
        """Distinct rows in ascending order, column by column, missing cells last; how many rows each stands for.

        All that was added; call it once.
        """
        if not self._runs:
            if self._held:
                yield self._merged()
            return
        if self._held:
            self._spill(*self._merged())
        while len(self._runs) > self._at_once:
            first = self._runs[: self._at_once]
            self._runs = [*self._runs[self._at_once :], self._written(merged(first))]
            for path in first:
                path.unlink()
        for table, counts in merged(self._runs):
            yield table.rename_columns(self._names), counts

    def _merged(self) -> tuple[pa.Table, Counts]:
        tables, counts = zip(*self._held, strict=True)
        return _distinct(pa.concat_tables(tables), np.concatenate(counts))[:2]

    def _spill(self, table: pa.Table, counts: Counts) -> None:
        numbered = table.rename_columns(list(map(str, range(table.num_columns))))
        self._runs.append(self._written(iter([(numbered, counts)])))
        self._held, self._names = [], table.column_names

    def _written(self, parts: Iterator[tuple[pa.Table, Counts]]) -> Path:
        """A run of rows that come in order."""
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".arrow", delete=False) as place:
            path = Path(place.name)
        counted = (table.append_column(_COUNT, pa.array(counts)) for table, counts in parts)
        first = next(counted)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, first.schema) as stream:
            for table in chain([first], counted):
                stream.write_table(table, max_chunksize=_BATCH_ROWS)
        return path


class _Run:
    """A sorted run, of which some rows are held."""

    def __init__(self, path: Path, rows: int) -> None:
        self._file = pa.OSFile(str(path), "rb")
        self._batches = iter(pa.ipc.open_stream(self._file))
        self._rows = rows
        self.held: pa.Table | None = None
        self.exhausted = False

    def refill(self) -> pa.Table:
        """The rows held, some more if half of them are gone."""
        held = [] if self.held is None else [self.held]
        number = sum(each.num_rows for each in held)
        while number <= self._rows // 2 and not self.exhausted:
            batch = next(self._batches, None)
            if batch is None:
                self.exhausted = True
                self._file.close()
            else:
                batch.validate(full=True)
                held.append(pa.Table.from_batches([batch]))
                number += batch.num_rows
        self.held = pa.concat_tables(held).combine_chunks()
        return self.held


def merged(paths: Sequence[Path]) -> Iterator[tuple[pa.Table, Counts]]:
    """The rows of sorted runs, each distinct one once, and how many it stands for.

    Raises:
        ResourceError: A run cannot be read any more.
    """
    try:
        yield from _merge([_Run(path, max(HELD_ROWS // len(paths), 1024)) for path in paths])
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, OverflowError) as error:
        raise ResourceError("Sorted rows cannot be read from the disk again; see to it, and run again.") from error


def _merge(runs: Sequence[_Run]) -> Iterator[tuple[pa.Table, Counts]]:
    left = list(runs)
    while left:
        held = [run.refill() for run in left]
        rows = pa.concat_tables(held)
        table, counts, labels = _distinct(
            rows.drop_columns([_COUNT]), rows.column(_COUNT).to_numpy().astype(np.int64, copy=False)
        )
        edges = np.cumsum([0, *(each.num_rows for each in held)])
        # A run that has more rows gives none that precedes the last one held, nor one that equals it.
        ends = [int(labels[end - 1]) + 1 for run, end in zip(left, edges[1:], strict=True) if not run.exhausted]
        limit = min(ends, default=len(counts))
        yield table.slice(0, limit), counts[:limit]
        for run, rest, (begin, end) in zip(left, held, pairwise(edges), strict=True):
            given = int(np.searchsorted(labels[begin:end], limit))
            run.held = rest.slice(given)
        left = [run for run in left if not run.exhausted or (run.held is not None and run.held.num_rows)]


def _distinct(rows: pa.Table, counts: Counts) -> tuple[pa.Table, Counts, Counts]:
    """Distinct rows in ascending order, their sums of counts, and the distinct row of each row."""
    labels, number = group([_ranked(column) for column in rows.columns], rows.num_rows)
    first = representatives(labels, number)
    sums = np.bincount(labels, counts, minlength=number).astype(np.int64)
    return plain(rows.take(pa.array(first))), sums, labels


def _ranked(column: pa.ChunkedArray) -> tuple[Counts, int]:
    """The rank of each cell among the distinct ones, and how many there are."""
    coded = column.combine_chunks()
    if not pa.types.is_dictionary(coded.type):
        coded = pc.dictionary_encode(coded, null_encoding="encode")
    values = len(coded.dictionary)
    order = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(values, np.int64)
    ranks[order] = np.arange(values)
    return ranks[coded.indices.to_numpy(zero_copy_only=False)], max(values, 1)
