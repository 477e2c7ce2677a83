"""Durations on the command line."""

from __future__ import annotations

import re
from typing import Final

from link.errors import UsageError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
_MOST_S: Final = 30 * 24 * 3600


def duration(text: str, option: str) -> int:
    """Seconds of a duration such as "90s", "10m", "2h" or "7d".

    Raises:
        UsageError: It is not one, or is longer than 30 days.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,7})([smhd])", text)
    if match is None:
        raise UsageError(f"{option} needs a duration such as 90s, 10m, 2h or 7d, not '{text}'")
    seconds = int(match[1]) * _UNITS[match[2]]
    if seconds > _MOST_S:
        raise UsageError(f"{option} allows 30d at most, not '{text}'")
    return seconds
