"""The packed results that coordinators may fetch: a file each, kept over a restart, removed an hour after the end."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from link.errors import ResourceError
from link.files.private_file import replace_private

KEEP_S: Final = 3600.0


def write_whole(path: Path, contents: bytes | pa.Buffer) -> None:
    """Puts a file that only its owner can read in its place; it is on disk, whole, when this returns.

    Raises:
        ResourceError: The disk refuses it; nothing is left behind.
    """
    try:
        replace_private(path, contents)
    except OSError as error:
        raise ResourceError(f"{path} cannot be written ({error.strerror}); see to the disk") from None


class ReleasedTables:
    """Files in a folder, readable by their owner alone.

    Args:
        folder: Theirs; it exists.
        now: Unix seconds.
    """

    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now
        self._kept: list[tuple[float, bytes]] = []  # by when they go, in the loop's time; a heap
        self._next: asyncio.TimerHandle | None = None

    def write(self, job_id: bytes, table: bytes) -> None:
        """Keeps a job's table; it is on disk, whole, when this returns.

        Raises:
            ResourceError: The disk refuses it; nothing is left behind.
        """
        write_whole(self._path(job_id), table)

    def read(self, job_id: bytes) -> bytes | None:
        """A job's table; None where it is not kept any more."""
        try:
            return self._path(job_id).read_bytes()
        except OSError:
            return None

    def forget_later(self, job_id: bytes, after_s: float = KEEP_S) -> None:
        """Removes a job's table after a while, on the running event loop."""
        heapq.heappush(self._kept, (asyncio.get_running_loop().time() + after_s, job_id))
        self._wait()

    def recover(self) -> None:
        """After a restart: removes what is too old or was not finished, and the rest when its hour has passed."""
        for path in list(self._folder.iterdir()):
            with contextlib.suppress(OSError, ValueError):
                left = path.stat().st_mtime + KEEP_S - self._now()
                if path.suffix or left <= 0:
                    path.unlink()
                else:
                    self.forget_later(bytes.fromhex(path.name), left)

    def _path(self, job_id: bytes) -> Path:
        return self._folder / job_id.hex()

    def _wait(self) -> None:
        """One timer serves all tables: one each would hold for an hour what its job held as it ended."""
        if self._next is not None:
            self._next.cancel()
        loop = asyncio.get_running_loop()
        self._next = loop.call_at(self._kept[0][0], self._remove_due) if self._kept else None

    def _remove_due(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._kept and self._kept[0][0] <= now:
            _, job_id = heapq.heappop(self._kept)
            with contextlib.suppress(OSError):
                self._path(job_id).unlink()
        self._wait()
