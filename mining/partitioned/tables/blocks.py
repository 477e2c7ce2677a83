"""Blocks of tables: each column with a dictionary of its own and short codes, sealed and read by itself."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mining.data.arrow_arrays import bytes_of, lengths_of, texts_of
from mining.data.tables import Column, Table
from mining.partitioned.blocks import damaged
from mining.partitioned.stored import removed_if_useless

MOST_TEXT: Final = 1 << 26  # bytes of a block's cells while it is gathered

_BLOCK, _PART = b"comine table 1\0\0", b"comine column 1\0"
_HEAD = struct.Struct("<16sQQI")  # what follows, how many rows, how many parts, CRC-32 with the parts' lengths
_PART_HEAD = struct.Struct("<16sQQQI")  # what follows, how many texts, their bytes, bytes of a code, CRC-32


class Viewed(Protocol):
    """A block of which a view reads its own columns."""

    def table(self, view: TableView) -> Table:
        """What a view sees; see `TableView.of`."""


@dataclass(frozen=True, slots=True)
class TableView:
    """Which columns of a block are seen, under what names.

    Attributes:
        id_columns: Those of ids that are seen; all or none.
        columns: The others that are seen.
        places: Of all of these among the parts of a block.
    """

    id_columns: tuple[str, ...]
    columns: tuple[str, ...]
    places: tuple[int, ...]

    def of(self, block: Viewed) -> Table:
        """What is seen of a block.

        Raises:
            InputDataError: It is missing or damaged, and was removed.
        """
        return block.table(self)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A block in its file, of which a view reads its own columns.

    Attributes:
        path: Of the file.
    """

    path: Path

    def table(self, view: TableView) -> Table:
        """What a view sees; see `TableView.of`."""
        with removed_if_useless(self.path):
            try:
                with self.path.open("rb") as file:
                    return _seen(view, *_parts(file, view.places))
            except (ValueError, IndexError, struct.error, pa.ArrowException):
                raise damaged(str(self.path)) from None


@dataclass(frozen=True, slots=True)
class TableParts:
    """A block in memory, with the parts of some columns.

    Attributes:
        n_rows: Of the block.
        parts: By place among all, as `parts_of` gives them.
        name: How an error calls it.
    """

    n_rows: int
    parts: Mapping[int, bytes] = field(repr=False)
    name: str

    def table(self, view: TableView) -> Table:
        """What a view sees; see `TableView.of`. Nothing is taken for granted of the parts.

        Raises:
            InputDataError: They are none of such a block.
        """
        try:
            found = _seen(view, self.n_rows, [self.parts[place] for place in view.places])
            for texts in (*found.ids, *(column.values for column in found.columns)):
                texts.validate(full=True)
            if any(len(each.codes) and each.codes.max() >= len(each.values) for each in found.columns):
                raise ValueError
        except (ValueError, LookupError, struct.error, pa.ArrowException):
            raise damaged(self.name) from None
        return found


def _seen(view: TableView, n_rows: int, parts: Sequence[bytes]) -> Table:
    found = [_part(part, n_rows) for part in parts]
    n_ids = len(view.id_columns)
    if any(len(texts) != n_rows for texts, _ in found[:n_ids]):
        raise ValueError
    columns = (Column(name, *part) for name, part in zip(view.columns, found[n_ids:], strict=True))
    return Table(view.id_columns, tuple(texts for texts, _ in found[:n_ids]), tuple(columns), n_rows)


def parts_of(table: Table) -> list[bytes]:
    """By column, those of ids first, what a block has of it."""
    parts = [_sealed(texts, None) for texts in table.ids]
    return parts + [_sealed(column.values, column.codes) for column in table.columns]


def block_bytes(table: Table) -> bytes:
    """The block of some rows, with all columns."""
    parts = parts_of(table)
    lengths = np.array([len(part) for part in parts], "<u8").tobytes()
    head = _HEAD.pack(_BLOCK, table.n_rows, len(parts), 0)
    return b"".join(
        [_HEAD.pack(_BLOCK, table.n_rows, len(parts), zlib.crc32(lengths, zlib.crc32(head))), lengths, *parts]
    )


def _sealed(texts: pa.Array, codes: NDArray[np.int32] | None) -> bytes:
    """Texts, and codes where there are any, 0 for an empty cell."""
    lengths, data = lengths_of(texts).astype("<u4").tobytes(), bytes_of(texts)
    width, short = 0, b""
    if codes is not None:
        width = next(width for width in (1, 2, 4) if len(texts) < 1 << 8 * width)
        short = (codes + np.int32(1)).astype(f"<u{width}").tobytes()
    head = _PART_HEAD.pack(_PART, len(texts), len(data), width, 0)
    crc = zlib.crc32(short, zlib.crc32(data, zlib.crc32(lengths, zlib.crc32(head))))
    return b"".join([_PART_HEAD.pack(_PART, len(texts), len(data), width, crc), lengths, data, short])


def _parts(file: BinaryIO, places: Sequence[int]) -> tuple[int, list[bytes]]:
    """The number of rows, and the bytes of some parts."""
    head = file.read(_HEAD.size)
    kind, n_rows, n_parts, crc = _HEAD.unpack(head)
    lengths = file.read(8 * n_parts) if n_parts < 1 << 32 else b""
    if kind != _BLOCK or zlib.crc32(lengths, zlib.crc32(_HEAD.pack(kind, n_rows, n_parts, 0))) != crc:
        raise ValueError
    ends = _HEAD.size + len(lengths) + np.cumsum(np.frombuffer(lengths, "<u8")).astype(np.int64)
    if file.seek(0, 2) != (ends[-1] if len(ends) else _HEAD.size):
        raise ValueError
    starts = [_HEAD.size + len(lengths), *ends[:-1].tolist()]
    found = []
    for place in places:
        file.seek(starts[place])
        found.append(file.read(int(ends[place]) - starts[place]))
    return n_rows, found


def _part(part: bytes, n_rows: int) -> tuple[pa.Array, NDArray[np.int32]]:
    """Texts and codes; no codes of ids."""
    kind, n_texts, n_bytes, width, crc = _PART_HEAD.unpack_from(part)
    head = _PART_HEAD.pack(kind, n_texts, n_bytes, width, 0)
    rest = memoryview(part)[_PART_HEAD.size :]
    if kind != _PART or zlib.crc32(rest, zlib.crc32(head)) != crc:
        raise ValueError
    data, short = rest[4 * n_texts : 4 * n_texts + n_bytes], rest[4 * n_texts + n_bytes :]
    if len(data) != n_bytes or len(short) != width * n_rows:
        raise ValueError
    texts = texts_of(np.frombuffer(rest[: 4 * n_texts], "<u4").astype(np.int64), data)
    if not width:
        return texts, np.empty(0, np.int32)
    codes: NDArray[Any] = np.frombuffer(short, f"<u{width}")
    return texts, codes.astype(np.int32) - np.int32(1)
