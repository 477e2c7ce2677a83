"""Files of an auditor's state: arrays one after the other, and a digest of all that precedes it.

What is in them is as secret as the auditor: who knows its primes can outwit it. They are read where they were
written, by the version that wrote them.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, BinaryIO, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError

_MAGIC: Final = b"comine auditor 1\n"
_BLOCK: Final = 1 << 22  # bytes that are written at once, so that a slice of a large array is never copied whole
_DIGEST_BYTES: Final = 32

S = TypeVar("S", bound=np.generic)


class StateWriter:
    """Writes to a file, and `finish` ends it.

    Args:
        file: Open for writing.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._write(_MAGIC)

    def numbers(self, *values: int) -> None:
        """Whole numbers below 2^63."""
        self._write(struct.pack(f"<{len(values)}q", *values))

    def array(self, array: NDArray[Any]) -> None:
        """The cells of an array; its type and shape are the reader's to know."""
        rows = max(1, _BLOCK // max(1, array[:1].nbytes))
        for start in range(0, len(array), rows):
            self._write(np.ascontiguousarray(array[start : start + rows]).data.cast("B"))

    def finish(self) -> None:
        """Writes the digest."""
        self._file.write(self._digest.digest())

    def _write(self, data: bytes | memoryview) -> None:
        self._digest.update(data)
        self._file.write(data)


class StateReader:
    """Reads what a `StateWriter` has written, in the same order.

    Args:
        file: Open for reading.

    Raises:
        InputDataError: It is no such file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.blake2b(digest_size=_DIGEST_BYTES)
        magic = bytearray(len(_MAGIC))
        self._fill(memoryview(magic))
        if magic != _MAGIC:
            raise InputDataError("this is no state of an auditor, or one of another version; leave it out")

    def numbers(self, count: int) -> tuple[int, ...]:
        """So many whole numbers.

        Raises:
            InputDataError: The file ends before.
        """
        data = bytearray(8 * count)
        self._fill(memoryview(data))
        return struct.unpack(f"<{count}q", data)

    def array(self, into: NDArray[S]) -> NDArray[S]:
        """Fills an array, which may be a part of a larger one whose rows lie apart.

        Raises:
            InputDataError: The file ends before.
        """
        rows = max(1, _BLOCK // max(1, into[:1].nbytes))
        for start in range(0, len(into), rows):
            block = np.empty_like(into[start : start + rows], order="C")
            self._fill(block.data.cast("B"))
            into[start : start + rows] = block
        return into

    def finish(self) -> None:
        """Checks the digest.

        Raises:
            InputDataError: The file is another one than was written.
        """
        if self._file.read(_DIGEST_BYTES + 1) != self._digest.digest():
            raise damaged()

    def _fill(self, view: memoryview) -> None:
        at = 0
        while at < len(view):
            data = self._file.read(len(view) - at)
            if not data:
                raise damaged()
            view[at : at + len(data)] = data
            at += len(data)
        self._digest.update(view)


def damaged() -> InputDataError:
    """What is raised where a state cannot be what was written."""
    return InputDataError("the state of an auditor is damaged; leave it out, and replay the queries that were answered")
