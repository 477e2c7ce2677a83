"""A file that only this process can read, of which nothing is left when it ends, however it ends.

It has no name: the system gives its room back when it is closed, or when the process dies. What is written is encrypted
in counter mode (`crypto.primitives.keystream`) under a secret that is in memory alone, so that neither a copy of the
disk nor what stays in its free sectors says anything. Each byte is written once, so that no keystream is used twice.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.keystream import Keystream
from link.errors import InternalError, ResourceError

SECRET_BYTES: Final = 32
_BLOCK: Final = 16
_COUNTERS: Final = 1 << 128

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ScratchLimits:
    """What something may take.

    Attributes:
        memory: Bytes of memory, about; what exceeds it is on the disk.
        folder: Where that is; by default where temporary files are.
    """

    memory: int
    folder: Path | None = None


class ScratchFile:
    """Appends bytes and reads them again, in several threads.

    Args:
        folder: Where it is, without a name; by default where temporary files are.
        secret: 32 bytes, fresh and kept nowhere.
        contents: What is kept there, in words.
        setting: Of `[party]`, how much of it may be in memory.
    """

    def __init__(self, folder: Path | None, secret: bytes, contents: str, setting: str) -> None:
        self._folder, self._contents = folder or Path(tempfile.gettempdir()), contents
        self._remedy = f"raise [party] {setting}" if folder else "set TMPDIR to a folder on a larger disk"
        self._key, self._counter = secret[:_BLOCK], int.from_bytes(secret[_BLOCK:], "big")
        self._lock = Lock()  # so that nobody uses the number of a file that was closed
        self._file: BinaryIO | None = None
        self._closed = False
        self.size = 0

    def append(self, contents: Bytes) -> int:
        """Adds bytes; where they begin.

        Raises:
            ResourceError: The disk refuses them.
        """
        offset, padded = self.size, -(-len(contents) // _BLOCK) * _BLOCK
        encrypted = self._crypted(offset, contents.data)
        with self._lock:
            try:
                number, left = self._opened().fileno(), encrypted.data
                while left:
                    left = left[os.pwrite(number, left, offset + len(encrypted) - len(left)) :]
            except OSError as error:
                raise self._refused(error) from None
        self.size = offset + padded
        return offset

    def read(self, offset: int, size: int) -> Bytes:
        """Bytes of what was added.

        Raises:
            ResourceError: The disk does not give them back.
        """
        if not size:
            return np.empty(0, np.uint8)
        before = offset % _BLOCK
        start, data = offset - before, bytearray(before + size)
        with self._lock:
            try:
                number, got = self._opened().fileno(), 0
                while got < len(data):
                    more = os.preadv(number, [memoryview(data)[got:]], start + got)
                    if not more:
                        raise OSError(None, "it has become shorter")
                    got += more
            except OSError as error:
                raise self._refused(error) from None
        return self._crypted(start, memoryview(data))[before:]

    def close(self) -> None:
        """Gives the room back."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()

    def _refused(self, error: OSError) -> ResourceError:
        return ResourceError(
            f"{self._contents} that do not fit memory cannot be kept in {self._folder} ({error.strerror}); make room "
            f"there, or {self._remedy}"
        )

    def _opened(self) -> BinaryIO:
        if self._closed:
            raise InternalError("a scratch file was used after its end")
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (mode 0600)
        return self._file

    def _crypted(self, offset: int, contents: memoryview) -> Bytes:
        """Bytes that are or will be at an offset, a multiple of 16: encrypted if they were not, and the other way."""
        counter = (self._counter + offset // _BLOCK) % _COUNTERS
        made = np.empty(len(contents) + _BLOCK, np.uint8)  # with the slack that the cipher asks for
        Keystream(self._key, counter.to_bytes(_BLOCK, "big")).add_to(contents, made.data)
        return made[: len(contents)]
