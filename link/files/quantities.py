"""Durations as files and commands have them; bytes, and numbers of things, as people read them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
_DURATION: Final = re.compile(r"(0|[1-9][0-9]{0,7})([smhd])")
_BYTES: Final = ("B", "kB", "MB", "GB", "TB")


def seconds(duration: str) -> int:
    """A duration such as "90s", "30m", "2h" or "7d" in seconds.

    Raises:
        ValueError: It is none.
    """
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError('must be a duration such as "90s", "30m", "2h" or "7d"')
    return int(found[1]) * _SECONDS[found[2]]


def duration(seconds: int) -> str:
    """The shortest way to write a time, as `seconds` reads it."""
    unit = next(unit for unit, size in reversed(_SECONDS.items()) if seconds % size == 0)
    return f"{seconds // _SECONDS[unit]}{unit}"


def percent(share: Decimal) -> str:
    """An exact share in percent, with all its digits."""
    return f"{(100 * share).normalize():f} %"


def size(number: float) -> str:
    """A number of bytes for people, in the unit that fits, three significant digits."""
    unit = 0
    while number >= 999.5 and unit < len(_BYTES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:,.0f} {_BYTES[unit]}" if unit == 0 or number >= 100 else f"{number:.3g} {_BYTES[unit]}"


def quantity(number: int, one: str) -> str:
    """A number of things, which are called by the name of one: 1 rule, 1,200 rules."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"
