"""Durations on the command line."""

from __future__ import annotations

from typing import Final

from link.errors import UsageError
from link.files.quantities import seconds

_MOST_S: Final = 30 * 24 * 3600


def duration(text: str, option: str) -> int:
    """Seconds of a duration such as "90s", "10m", "2h" or "7d".

    Raises:
        UsageError: It is not one, or is longer than 30 days.
    """
    try:
        found = seconds(text)
    except ValueError:
        found = 0
    if not found:
        raise UsageError(f"{option} needs a duration such as 90s, 10m, 2h or 7d, not '{text}'")
    if found > _MOST_S:
        raise UsageError(f"{option} allows 30d at most, not '{text}'")
    return found
