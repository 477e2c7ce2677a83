"""The speed of this machine, measured once a process, so that nobody who looks at a job waits for a measurement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from jobs.plan.calibration import Speed
from party.jobs.planning.estimate import own_speed

FRESH_S: Final = 600.0


class KeptSpeed:
    """The speed as it was measured last; any thread may use it.

    Args:
        measure: Measures it, which takes about half a second.
        now: Seconds that never go back.
    """

    def __init__(self, measure: Callable[[], Speed] = own_speed, now: Callable[[], float] = time.monotonic) -> None:
        self._measure, self._now, self._first = measure, now, threading.Lock()
        self._kept: tuple[float, Speed] | None = None
        self._again: threading.Thread | None = None

    def speed(self) -> Speed:
        """The speed; only who is the first to ask waits. Where it is old it is measured anew, for whoever asks next."""
        with self._first:
            if self._kept is None:
                self._take()
            assert self._kept is not None
            at, found = self._kept
            is_old = self._now() - at > FRESH_S
            if is_old and (self._again is None or not self._again.is_alive()):
                self._again = threading.Thread(target=self._take, name="speed", daemon=True)
                self._again.start()
            return found

    def _take(self) -> None:
        found = self._measure()
        self._kept = (self._now(), found)


OF_THIS_MACHINE: Final = KeptSpeed()
"""Of all consoles of a process."""
