"""Simulated time, in the place of the system's. To be installed before anything of comine is loaded.

What measures seconds takes the loop's time; what asks for the date takes it by the clock of its machine. What C
libraries ask the system for is not reached: the product does not use it but for spans of computing time.
"""

from __future__ import annotations

import datetime as dt
import importlib
import time
from types import SimpleNamespace
from typing import Any, Final

from tests.chaos.machines import HERE

EPOCH_S: Final = 1_790_000_000.0
"""When every simulation begins, in Unix seconds."""
_DATED: Final = (
    "link.pki.authority",
    "link.pki.identity",
    "link.pki.revocation",
    "jobs.audit.log",
    "jobs.audit.checks.lapse",
    "jobs.results.manifest",
)
_elapsed: list[float] = [0.0]


def elapsed() -> float:
    """Seconds since the simulation began."""
    return _elapsed[0]


def set_elapsed(seconds: float) -> None:
    """Says how late it is."""
    _elapsed[0] = seconds


def unix() -> float:
    """Unix seconds by the clock of this machine."""
    here = HERE.get()
    return EPOCH_S + _elapsed[0] + (0.0 if here is None else here.machine.ahead_s)


class _Datetime(dt.datetime):
    """A `datetime` whose present is the simulated one."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        return dt.datetime.fromtimestamp(unix(), tz)


def install() -> None:
    """Replaces the system's clocks in this process, which does nothing but simulations."""
    time.time = unix
    time.time_ns = lambda: int(unix() * 1e9)
    time.monotonic = elapsed
    dates = SimpleNamespace(**{name: getattr(dt, name) for name in dir(dt) if not name.startswith("__")})
    dates.datetime = _Datetime
    for name in _DATED:
        importlib.import_module(name).dt = dates  # type: ignore[attr-defined]
