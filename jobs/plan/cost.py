"""What a job costs the machines of its parties, as one figure."""

from __future__ import annotations

from typing import Final

from jobs.plan.plan import Plan
from link.files.quantities import size

_MINUTE, _HOUR = 60, 3600
_DIGITS: Final = 2


def cost(plan: Plan) -> str:
    """The figure that is expected, or its order of magnitude; between what it lies is in the plan."""
    if plan.supposed is not None:
        return f"{about(plan.supposed.bytes_sent, plan.supposed.seconds)} {plan.supposed.condition}"
    if not plan.is_least:
        return about(plan.bytes_sent, plan.seconds)
    if plan.middle is None:
        return f"more than {_size(plan.bytes_sent)}; how much depends on the rows"
    return f"{about(*plan.middle)}, very roughly, as it depends on the rows"


def about(bytes_sent: float, seconds: float) -> str:
    """Bytes of all parties together and seconds, as one says them."""
    return f"about {_size(bytes_sent)} and {_time(seconds)}"


def _size(number: float) -> str:
    return size(float(f"{number:.{_DIGITS}g}"))


def _time(seconds: float) -> str:
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h"
