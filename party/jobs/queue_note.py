"""Which jobs run at a node, how far they are, and which wait: noted in its state folder for `comine party status`.

All of it is in the memory of the node's process, and whoever asks is another one. The note is a little late and
nothing depends on it: a node that cannot write it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from link.files.private_file import replace_private
from party.jobs.turns import Turns

FILE: Final = "queue.json"
WAIT_S: Final = 0.5  # in which changes of turns are noted together
PROGRESS_S: Final = 2.0  # between two notes of how far jobs are, while some run


class Running(NamedTuple):
    """How far a job is that runs, as the party's own people are shown it; never a value of the data.

    Attributes:
        step: As its progress names it; empty before the first.
        done: How much of the step.
        total: Of how much; 0 where that is not known.
        since: When the attempt began, Unix seconds.
        deadline: By when it has to be done, Unix seconds.
        peers: By peer, the bytes sent to it and received from it so far.
    """

    step: str
    done: int
    total: int
    since: float
    deadline: float
    peers: Mapping[str, tuple[int, int]]


class QueueNote:
    """Writes the note again whenever turns change, and now and then while jobs run. To be used on the event loop only.

    Args:
        path: The file.
        turns: What it tells.
        running: How far a job is, by its id; None of one that does not run.
    """

    def __init__(self, path: Path, turns: Turns, running: Callable[[bytes], Running | None]) -> None:
        self._path, self._turns, self._running = path, turns, running
        self._noting: asyncio.Task[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()
        self._noted = b""
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
        self._changed.set()
        if self._noting is not None and self._noting.cancelled():
            return  # the event loop ends, and would leave another one pending
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note())

    async def _note(self) -> None:
        runs = True
        while runs or self._changed.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_S):
                    await self._changed.wait()
                    await asyncio.sleep(WAIT_S)
            self._changed.clear()
            contents, runs = self._contents()
            if contents == self._noted:
                continue
            self._writing = asyncio.ensure_future(asyncio.to_thread(replace_private, self._path, contents))
            with contextlib.suppress(OSError):
                await asyncio.shield(self._writing)
                self._noted = contents

    def _contents(self) -> tuple[bytes, bool]:
        """What is noted now, and whether some job runs."""
        noted, runs = [], False
        for each in self._turns.shown():
            running = self._running(bytes.fromhex(each.job_id))
            runs = runs or running is not None
            noted.append(each._asdict() | {"running": None if running is None else running._asdict()})
        return json.dumps(noted).encode(), runs


def noted(path: Path) -> dict[str, dict[str, Any]]:
    """What a note says, by the job's id in hex; nothing where there is none, or none that can be read.

    Under `running` there is how far a job is that runs, a `Running`; otherwise None.
    """
    try:
        return {str(each["job_id"]): each | {"running": _read(each)} for each in json.loads(path.read_bytes())}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _read(each: Mapping[str, Any]) -> Running | None:
    running = each.get("running")
    return None if running is None else Running(**running)
