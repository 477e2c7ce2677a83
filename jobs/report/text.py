"""Words and numbers of the report as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

# Controls, and the characters that change the direction of what follows: a name must not disguise its neighbours.
_HIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_STEP: Final = 1000
_DIGITS: Final = 6  # of a number in a picture


def visible(text: str) -> str:
    """The text with a sign in place of every character that is not seen."""
    return _HIDDEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text) if text else "⟨empty⟩"


def number(value: float) -> str:
    """A whole number with separators, any other with four significant digits."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) < _STEP else f"{value:,.0f}"


def measure(value: float | None) -> str:
    """A rule's measure, four significant digits; a dash for one that is not known."""
    if value is None:
        return "—"
    if not math.isfinite(value):
        return "∞"
    return f"{value:#.4g}" if abs(value) < _STEP else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share in percent, three significant digits."""
    return f"{100 * share:#.3g}".rstrip(".") + " %"


def seconds(value: float) -> str:
    """A duration; minutes from two of them on."""
    if value >= 120:
        return f"{int(value) // 60} min {int(value) % 60} s"
    return f"{value:.2f} s"


def moment(when: datetime) -> str:
    """A point in time, in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def unix(when: int) -> str:
    """A point in time given in Unix seconds."""
    try:
        return moment(datetime.fromtimestamp(when, UTC))
    except (OverflowError, ValueError, OSError):
        return "at no real time"


def plotted(numbers: Iterable[float]) -> list[float | None]:
    """Numbers with as many digits as a picture shows; None for those that are not known."""
    return [float(f"{number:.{_DIGITS}g}") if number == number else None for number in numbers]
