"""Whether the disk under a folder takes what a node has to write: tried, and not believed."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import time
from pathlib import Path
from typing import Final

SIZE: Final = 64 << 10  # written to the state folder and removed: a node that starts writes about as much
ANSWER_S: Final = 2.0  # beyond which a disk hangs
FRESH_S: Final = 1.0  # for which an answer holds, however often somebody asks


class Probe:
    """Tries to write to a folder. To be used on the event loop only.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trying: asyncio.Future[str] | None = None
        self._tried = float("-inf")
        self._problem = ""

    async def problem(self) -> str:
        """Why nothing can be written, as the end of a sentence; empty where all is well."""
        if self._trying is None and time.monotonic() - self._tried < FRESH_S:
            return self._problem
        if self._trying is None:  # of a disk that hangs one thread hangs, no matter who asks
            self._trying = asyncio.ensure_future(asyncio.to_thread(write_fault, self._folder))
            self._trying.add_done_callback(self._done)
        try:
            async with asyncio.timeout(ANSWER_S):
                fault = await asyncio.shield(self._trying)
        except TimeoutError:
            return f"the disk of the state folder has not answered for {ANSWER_S:g} s"
        return _problem_of(fault)

    def _done(self, trying: asyncio.Future[str]) -> None:
        self._trying, self._tried = None, time.monotonic()
        self._problem = "" if trying.cancelled() else _problem_of(trying.result())


def write_fault(folder: Path) -> str:
    """Why nothing can be written to a folder, by trying it; empty where it can."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            if probe.write(bytes(SIZE)) < SIZE:
                return os.strerror(errno.ENOSPC)
            os.fsync(probe.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _problem_of(fault: str) -> str:
    return fault and f"the state folder cannot be written ({fault}); see to its disk"
