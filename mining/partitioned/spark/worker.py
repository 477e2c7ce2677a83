"""What runs at the workers of a cluster: generators over batches of rows, for Spark's `mapInArrow`.

All take and give rows of one form: `FIELDS`. A failure travels as a row too, so that no log of the cluster has its
sentence, which might be about data.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from link.errors import ComineError, InputDataError
from mining.data.formats.table_sources import list_rows, parquet_errors
from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block, code_type, items_part, rows_part
from mining.partitioned.encoding.pieces import cut, gathered, pieces
from mining.partitioned.encoding.source import TransactionSource
from mining.partitioned.runner import Seen
from mining.partitioned.spark.values import to_bytes

FIELDS: Final = ("place", "rows", "value", "names")  # int, int, bytes, bytes
FAILURE: Final = -1  # places of rows that are none of a block
COUNTED: Final = -2
CONTINUED: Final = -1  # `rows` of a row whose value goes on in the next one
PIECE: Final = 4 << 20  # bytes of a value that come in one row: Spark holds rows several times over
WITHIN: Final = 20  # bits of a place that count the blocks of one share
SEAL: Final = 4  # bytes
_PLACE: Final = 8
NOISE: Final = "cryptography"  # the package that kernels import that perturb rows
TABLES: Final = ("google", "pydantic")  # and those of tables besides; the first is protobuf's

Batches = Iterable[pa.RecordBatch]
Row = tuple[int, int, bytes, bytes]


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads.

    Attributes:
        path: A Parquet file.
        groups: Its row groups.
    """

    path: str
    groups: tuple[int, ...]


class Task:
    """A generator of rows over rows, as Spark calls it."""

    def __init__(self, work: Callable[[Iterator[dict[str, Any]]], Iterator[Row]]) -> None:
        self.work = work

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows, or one that tells of a failure; one that was there before goes on."""
        failed: list[Row] = []

        def rows() -> Iterator[dict[str, Any]]:
            for batch in batches:
                for row in batch.to_pylist():
                    if row.get("place") == FAILURE:
                        failed.append(tuple(row[name] for name in FIELDS))
                    elif not failed:
                        yield row

        yield from _told(self.work(rows()))
        for row in failed[:1]:
            yield _batch(row)


class TableTask:
    """The same over Arrow's own batches."""

    def __init__(self, work: Callable[[Batches], Iterator[Row]]) -> None:
        self.work = work

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows, or one that tells of a failure."""
        yield from _told(self.work(batches))


def _told(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    try:
        for row in rows:
            yield _batch(row)
    except ComineError as error:
        yield _batch((FAILURE, 0, error.code.encode(), error.message.encode()))
    except Exception as error:  # whose words may be about data
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = "" if trace is None else f" in line {trace.tb_lineno} of {Path(trace.tb_frame.f_code.co_filename).name}"
        yield _batch((FAILURE, 0, b"E103", f"{type(error).__name__}{where}".encode()))


def _batch(row: Row) -> pa.RecordBatch:
    kinds = (pa.int64(), pa.int64(), pa.binary(), pa.binary())
    return pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)], list(FIELDS)
    )


def in_pieces(place: int, rows: int, value: bytes, names: bytes = b"") -> Iterator[Row]:
    """A row for the node, in as many as its value needs."""
    last = max(len(value) - 1, 0) // PIECE * PIECE
    for start in range(0, last, PIECE):
        yield place, CONTINUED, value[start : start + PIECE], b""
    yield place, rows, value[last:], names


def joined(rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """The rows that were given to `in_pieces`."""
    begun = list[bytes]()
    for place, number, value, names in rows:
        begun.append(bytes(value))
        if number != CONTINUED:
            yield place, number, b"".join(begun), bytes(names)
            begun.clear()


# -- before ------------------------------------------------------------------------------------------------------------
def equipment(_rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
    """One row for each partition, so that the node knows how many run at a time: Python's version, packages lacking."""
    lacking = [name for name in (NOISE, *TABLES) if find_spec(name) is None]
    yield (0, 0, to_bytes([".".join(map(str, sys.version_info[:2])), lacking]), b"")


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files as a worker sees them, as a row of names, sizes, times and rows of each row group."""

    pattern: str

    def __call__(self, _rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """One row."""
        found = []
        for name in sorted(glob(self.pattern)):
            with parquet_errors(Path(name)):
                status, groups = Path(name).stat(), pq.read_metadata(name)
            rows = [groups.row_group(group).num_rows for group in range(groups.num_row_groups)]
            found.append((name, status.st_size, status.st_mtime_ns, rows))
        if not found:
            raise InputDataError(
                f"the workers of the cluster find no file {self.pattern}; give a path that all of them can read."
            )
        yield (0, 0, to_bytes(found), b"")


# -- encoding ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ReadShares:
    """Blocks of row groups of Parquet files; the number of a share is the `id` of a row.

    Attributes:
        source: The source; its place is that of the share.
        shares: All of them.
        withheld: Patterns of items that are left out.
    """

    source: TransactionSource
    shares: Sequence[Share]
    withheld: tuple[str, ...]

    def __call__(self, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """Blocks with the names of their items."""
        for row in rows:
            number = row["id"]
            share = self.shares[number]
            own = TransactionSource(
                share.path, "parquet", id_column=self.source.id_column, item_column=self.source.item_column
            )
            with tempfile.TemporaryDirectory() as scratch:
                yield from _blocks(pieces(own, share.groups, Path(scratch)), number, self.withheld)


@dataclass(frozen=True, slots=True)
class ReadLists:
    """Blocks of the rows of a table, each with `numbered`'s number first, and a list of items in its last column.

    Attributes:
        name: Of that column, for errors.
        withheld: Patterns of items that are left out.
    """

    name: str
    withheld: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[Row]:
        """Blocks with the names of their items."""
        share, own = numbered(batches)
        found = (list_rows(self._items(batch), self.name, "The query") for batch in own)
        rows = chain.from_iterable(cut(piece) for piece in gathered(found))
        yield from _blocks(rows, share, self.withheld)

    def _items(self, batch: pa.RecordBatch) -> pa.Array:
        ids = batch.column(0)
        textual = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
        if batch.num_columns > 1 and (ids.null_count or (textual and pc.any(pc.equal(ids, "")).as_py())):
            raise InputDataError("the query: rows have empty ids; every row needs one.")
        return batch.column(batch.num_columns - 1)


def numbered(batches: Batches) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The number of the partition that rows are of, which their first column has, and the others.

    The number of the task that reads them would be another one where blocks are read again for a task that counts
    several partitions.
    """
    coming = (batch for batch in batches if batch.num_rows)
    first = next(coming, None)
    if first is None:
        return 0, iter(())
    return first.column(0)[0].as_py(), (batch.remove_column(0) for batch in chain([first], coming))


def _blocks(found: Iterator[Transactions], share: int, withheld: Sequence[str]) -> Iterator[Row]:
    for number, piece in enumerate(found):
        rows = piece.without(withheld)
        codes = rows.indices.astype(code_type(rows.n_items))
        block = rows_part(rows.offsets.astype(np.uint32), codes)
        yield (share << WITHIN) + number, rows.n_rows, block, names_bytes(rows.items, rows.item_counts())


def names_bytes(items: Sequence[str], counts: Any) -> bytes:
    """Items and in how many rows each is."""
    table = pa.table({"item": pa.array(items, pa.large_string()), "count": pa.array(counts, pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(memoryview(sink.getvalue()))


def read_names(data: bytes) -> tuple[list[str], list[int]]:
    """What `names_bytes` has written."""
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    return table["item"].to_pylist(), table["count"].to_pylist()


def merge_names(rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
    """The items of all blocks of a partition, and which these were."""
    found: dict[str, int] = {}
    counted = list[tuple[int, bytes]]()
    for row in rows:
        for item, count in zip(*read_names(row["names"]), strict=True):
            found[item] = found.get(item, 0) + count
        counted.append((row["place"], seal_of(row["value"], row["names"])))
    yield from in_pieces(COUNTED, len(counted), names_bytes(list(found), list(found.values())), sealed(counted))


@dataclass(frozen=True, slots=True)
class Number:
    """Blocks with the numbers of their items in the dictionary of all; what is left of their names is a seal.

    It is that of the block with its names, which was read once more where Spark had dropped it: an item that is not in
    the dictionary is of a block that has changed, and the seal tells so.
    """

    items: tuple[str, ...]

    def __call__(self, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """The blocks."""
        number = {item: place for place, item in enumerate(self.items)}
        for row in rows:
            own, _ = read_names(row["names"])
            block = row["value"] + items_part(np.fromiter((number.get(item, 0) for item in own), np.int32, len(own)))
            yield row["place"], row["rows"], block, seal_of(row["value"], row["names"])


# -- counting ----------------------------------------------------------------------------------------------------------
def seals(rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
    """What identifies each block, and what it was numbered from."""
    for row in rows:
        yield row["place"], row["rows"], seal_of(row["value"]), row["names"]


def seal_of(*parts: bytes) -> bytes:
    """Equal for equal blocks."""
    seal = 0
    for part in parts:
        seal = zlib.crc32(part, seal)
    return seal.to_bytes(SEAL, "little")


def sealed(blocks: Sequence[tuple[int, bytes]]) -> bytes:
    """Which blocks were counted, by their places and seals."""
    return b"".join(place.to_bytes(_PLACE, "little") + seal for place, seal in blocks)


def read_sealed(data: bytes) -> list[tuple[int, bytes]]:
    """What was given to `sealed`."""
    each = _PLACE + SEAL
    starts = range(0, len(data), each)
    return [
        (int.from_bytes(data[start : start + _PLACE], "little"), data[start + _PLACE : start + each])
        for start in starts
    ]


class Read(NamedTuple):
    """A block as it is read.

    Attributes:
        place: Its own.
        rows: How many it has.
        block: What a view sees.
        seal: What identifies what was read.
    """

    place: int
    rows: int
    block: Any
    seal: bytes


Reader = Callable[[Iterator[dict[str, Any]]], Iterator[Read]]
"""Reads the blocks of the rows of a frame; picklable."""


def read_rows(rows: Iterator[dict[str, Any]]) -> Iterator[Read]:
    """Blocks of transactions, each of which is a row."""
    for row in rows:
        place, block = row["place"], row["value"]
        yield Read(place, row["rows"], Block.from_bytes(block, f"block {place}"), seal_of(block))


@dataclass(frozen=True, slots=True)
class Totals:
    """The sum over the blocks of a partition, and which these were."""

    read: Reader
    view: Seen[Any, Any]
    kernel: Callable[[Any, int], Any]
    firsts: dict[int, int]

    def __call__(self, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """One result, or none for a partition without blocks."""
        total, counted = None, list[tuple[int, bytes]]()
        for place, _, block, seal in self.read(rows):
            found = self.kernel(self.view.of(block), self.firsts[place])
            total = found.copy() if total is None else np.add(total, found, out=total)
            counted.append((place, seal))
        if total is not None:
            yield from in_pieces(COUNTED, len(counted), to_bytes(total), sealed(counted))


@dataclass(frozen=True, slots=True)
class Parts:
    """What a kernel gives for each block."""

    read: Reader
    view: Seen[Any, Any]
    kernel: Callable[[Any, int], Any]
    firsts: dict[int, int]

    def __call__(self, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """A result for each block."""
        for place, n_rows, block, seal in self.read(rows):
            found = to_bytes(self.kernel(self.view.of(block), self.firsts[place]))
            yield from in_pieces(place, n_rows, found, seal)
