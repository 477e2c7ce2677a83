"""Which jobs run at a node and which wait for their turn, noted in its state folder for `comine party status`.

The turns are in the memory of the node's process, and whoever asks is another one. The note is a little late and
nothing depends on it: a node that cannot write it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any, Final

from link.files.private_file import replace_private
from party.jobs.turns import Turns

FILE: Final = "queue.json"
WAIT_S: Final = 0.5  # in which changes are noted together


class QueueNote:
    """Writes the note again whenever turns change. To be used on the event loop only.

    Args:
        path: The file.
        turns: What it tells.
    """

    def __init__(self, path: Path, turns: Turns) -> None:
        self._path, self._turns = path, turns
        self._noting: asyncio.Task[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._changed = False
        turns.changed = self._change
        self._remove()  # that of an earlier process

    async def close(self) -> None:
        """Removes the note."""
        self._turns.changed = lambda: None
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.gather(self._noting, return_exceptions=True)
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _change(self) -> None:
        self._changed = True
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note())

    async def _note(self) -> None:
        while self._changed:
            await asyncio.sleep(WAIT_S)
            self._changed = False
            contents = json.dumps([each._asdict() for each in self._turns.shown()]).encode()
            self._writing = asyncio.ensure_future(asyncio.to_thread(replace_private, self._path, contents))
            with contextlib.suppress(OSError):
                await asyncio.shield(self._writing)


def noted(path: Path) -> dict[str, dict[str, Any]]:
    """What a note says, by the job's id in hex; nothing where there is none, or none that can be read."""
    try:
        return {str(each["job_id"]): each for each in json.loads(path.read_bytes())}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
