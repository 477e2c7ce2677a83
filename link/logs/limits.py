"""How many lines of a node's log one caller may cause: it could fill a disk with calls that are refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

MOST: Final = 120  # lines of one caller at once
A_SECOND: Final = 1.0  # lines of one caller, in the long run
MAX_CALLERS: Final = 1024  # that are told apart
SUMMARY_S: Final = 60.0  # between two lines that say how many were withheld
_OTHERS: Final = "others"
_KEYS: Final = ("caller", "address", "library", "event")


@dataclass(slots=True)
class _Caller:
    """How many lines a caller may cause now, and how many it has caused beyond."""

    key: str
    left: float
    seen: float
    reported: float
    withheld: int = 0


class LineLimits:
    """A structlog processor that withholds lines of callers that cause too many, and says later how many.

    Lines that name no caller count for what they say, since callers can cause some of these, too.

    Args:
        now: Seconds of a clock that only goes forward.

    Attributes:
        report: Called with a key of lines, its value, and how many such lines were withheld.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.callers: dict[str, _Caller] = {}
        self._lock = threading.Lock()
        self.report: Callable[[str, str, int], None] = lambda key, value, number: None

    def __call__(self, _: object, __: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lets a line through, or drops it."""
        if "lines" in event:  # is such a summary
            return event
        key = next(key for key in _KEYS if key in event)
        with self._lock:
            now = self._now()
            caller = self._of(str(event[key]), key, now)
            caller.left = min(MOST, caller.left + A_SECOND * (now - caller.seen))
            caller.seen = now
            if caller.left < 1:
                caller.withheld += 1
                raise structlog.DropEvent
            caller.left -= 1
        return event

    def summarise(self) -> None:
        """Reports the lines that were withheld since the last time, and forgets who is quiet."""
        due = []
        with self._lock:
            now = self._now()
            for name, caller in list(self.callers.items()):
                if caller.withheld and now - caller.reported >= SUMMARY_S:
                    due.append((caller.key, name, caller.withheld))
                    caller.withheld, caller.reported = 0, now
                elif not caller.withheld and caller.left + A_SECOND * (now - caller.seen) >= MOST:
                    del self.callers[name]
        for key, name, withheld in due:
            self.report(key, name, withheld)

    def _of(self, name: str, key: str, now: float) -> _Caller:
        if name not in self.callers and len(self.callers) >= MAX_CALLERS:
            name, key = _OTHERS, "caller"
        return self.callers.setdefault(name, _Caller(key, MOST, now, now - SUMMARY_S))
