"""Blocks of rows: a dictionary of their own, offsets and short codes, as arrays and as bytes."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.transactions import Transactions

MOST_ROWS: Final = 1 << 18  # of a block: few enough for bounded memory, enough for the work of a call to be worth it
MOST_OCCURRENCES: Final = 1 << 22

_ROWS, _ITEMS = b"comine block 1\0\0", b"comine items 1\0\0"
_HEAD = struct.Struct("<16sQQQI")  # what follows, how many offsets or items, how many codes, bytes of a code, CRC-32
_SHORT: Final = 1 << 16


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Some rows of a party, in the form in which they are kept.

    Attributes:
        numbers: The block's own items: their positions in the dictionary of all rows, ascending.
        offsets: Where each row starts in `codes`; n_rows + 1 numbers, the first 0.
        codes: Positions in `numbers`, ascending and distinct inside a row; in two bytes where these suffice.
    """

    numbers: NDArray[np.int32]
    offsets: NDArray[np.uint32]
    codes: NDArray[np.unsignedinteger[Any]]

    @classmethod
    def of(cls, rows: Transactions) -> Block:
        """Rows on the dictionary of all."""
        held = np.zeros(rows.n_items, bool)
        held[rows.indices] = True
        numbers = np.flatnonzero(held).astype(np.int32)
        code = np.cumsum(held) - 1
        return cls(numbers, rows.offsets.astype(np.uint32), code[rows.indices].astype(code_type(len(numbers))))

    @property
    def n_rows(self) -> int:
        """Number of rows, empty ones included."""
        return len(self.offsets) - 1

    def seen(self, target: NDArray[np.int32] | None, n_items: int) -> Transactions:
        """The rows under other item numbers, without names.

        Args:
            target: New number of each item of the dictionary of all rows, negative where it is left out; None: as is.
            n_items: Size of the dictionary that the new numbers are of.
        """
        nameless, offsets = ("",) * n_items, self.offsets.astype(np.int64)
        if target is None:
            return Transactions(nameless, offsets, self.numbers[self.codes])
        own = Transactions(("",) * len(self.numbers), offsets, self.codes.view())  # type: ignore[arg-type]
        return own.renumbered(target[self.numbers], nameless)

    def to_bytes(self) -> bytes:
        """The block for a file or a wire; `from_bytes` reads it."""
        return rows_part(self.offsets, self.codes) + items_part(self.numbers)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, name: str) -> Block:
        """The block of bytes, which its arrays share.

        Args:
            data: What `to_bytes` gave, or its two parts one after the other.
            name: How an error calls it.

        Raises:
            InputDataError: They are damaged, cut, or none of a block.
        """
        rest = memoryview(data)
        try:
            n_offsets, n_codes, width, body, rest = _opened(rest, _ROWS)
            n_items, _, _, items, rest = _opened(rest, _ITEMS)
            offsets = np.frombuffer(body[: 4 * n_offsets], np.uint32)
            codes = np.frombuffer(body[4 * n_offsets :], f"u{width}")
            numbers = np.frombuffer(items, np.int32)
            if rest or (len(offsets), len(codes), len(numbers)) != (n_offsets, n_codes, n_items):
                raise ValueError
        except (ValueError, struct.error):
            raise damaged(name) from None
        return cls(numbers, offsets, codes)


def damaged(name: str) -> InputDataError:
    """A block is not what was written."""
    return InputDataError(f"{name} is damaged; run the job again, and the rows are encoded anew")


def code_type(n_items: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The shortest word for a block's codes."""
    return np.dtype(np.uint16) if n_items <= _SHORT else np.dtype(np.uint32)


def rows_part(offsets: NDArray[np.uint32], codes: NDArray[Any]) -> bytes:
    """The rows of a block, which are known before the numbers of its items in the dictionary of all."""
    return _sealed(_ROWS, len(offsets), len(codes), codes.dtype.itemsize, offsets.tobytes() + codes.tobytes())


def items_part(numbers: NDArray[np.int32]) -> bytes:
    """The numbers of a block's items."""
    return _sealed(_ITEMS, len(numbers), 0, 0, numbers.tobytes())


def _sealed(kind: bytes, *fields: int | bytes) -> bytes:
    *sizes, body = fields
    assert isinstance(body, bytes)
    head = _HEAD.pack(kind, *sizes, 0)
    return _HEAD.pack(kind, *sizes, zlib.crc32(body, zlib.crc32(head))) + body


def _opened(data: memoryview, kind: bytes) -> tuple[int, int, int, memoryview, memoryview]:
    """Sizes and body of what begins some bytes, and what follows."""
    found, count, n_codes, width, seal = _HEAD.unpack_from(data)
    length = 4 * count + width * n_codes
    body, rest = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
    head = _HEAD.pack(found, count, n_codes, width, 0)
    if found != kind or zlib.crc32(body, zlib.crc32(head)) != seal:
        raise ValueError
    return count, n_codes, width, body, rest
