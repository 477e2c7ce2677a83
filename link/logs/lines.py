"""The way of a node's log to its standard error, whose reader may stall: nobody who logs ever waits for it.

Lines stand in a bounded queue, which a thread of its own empties. It writes to the file descriptor itself: an object of
Python would be locked by the write that hangs, and would let the process hang at its end.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from typing import Final

MAX_LINES: Final = 4096  # that wait; of a kilobyte at the most, but for a few
CLOSE_S: Final = 1.0  # for the last lines, when the node ends
TICK_S: Final = 5.0


class LogLines(io.TextIOBase):
    """Text on its way to a file descriptor. What finds no room is lost, and counted.

    Args:
        descriptor: Where the text goes.

    Attributes:
        lost: Called by the thread with how many pieces of text were lost, once there is room again.
        tick: Called by the thread now and then.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: queue.Queue[str | None] = queue.Queue(MAX_LINES)
        self._counting = threading.Lock()
        self._lost = 0
        self._over = threading.Event()
        self.lost: Callable[[int], None] = lambda number: None
        self.tick: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="comine-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Puts text into the queue; what the thread says itself, such as how many were lost, needs no place in it."""
        if threading.current_thread() is self._thread:
            self._put(text)
            return len(text)
        try:
            self._waiting.put_nowait(text)
        except queue.Full:
            with self._counting:
                self._lost += 1
        return len(text)

    def finish(self, patience_s: float = CLOSE_S) -> None:
        """Waits until all is written, for a moment; where nobody reads, the rest is given up."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=patience_s)
            self._over.wait(patience_s)

    def _run(self) -> None:
        ticked = time.monotonic()
        while True:
            text: str | None = ""
            with contextlib.suppress(queue.Empty):
                text = self._waiting.get(timeout=TICK_S)
            if time.monotonic() - ticked >= TICK_S:
                ticked = time.monotonic()
                self.tick()
            if text is None:
                self._over.set()
                return
            self._put(text)
            with self._counting:
                lost, self._lost = self._lost, 0
            if lost:
                self.lost(lost)

    def _put(self, text: str) -> None:
        data = text.encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # nobody reads any more, or the disk is full
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:  # another holder of the descriptor has made it so; the rest of the line waits
                    room = select.poll()
                    room.register(self._descriptor, select.POLLOUT)
                    room.poll()
