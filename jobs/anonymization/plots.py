"""Bars side by side as the template draws them: before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jobs.anonymization.distributions import Bar
from jobs.report import text

HEIGHT: Final = 150  # of the highest bar
_GROUP: Final = 34  # from one place to the next
_BAR: Final = 13
_LEFT: Final = 72
_UNDER: Final = 96  # for slanted labels
_CHARACTERS: Final = 17


@dataclass(frozen=True)
class DrawnBar:
    """Two bars of one place; `x` is the left edge of the first, heights are in pixels."""

    x: int
    before: float
    after: float
    label: str
    caption: str


@dataclass(frozen=True)
class Plot:
    """A plot of bars in pairs."""

    width: int
    height: int
    base: int
    bar: int
    bars: tuple[DrawnBar, ...]
    ticks: tuple[tuple[float, str], ...]


def paired_bars(bars: Sequence[Bar]) -> Plot:
    """Bars scaled so that the largest share fills the height."""
    most = max((max(bar.before, bar.after) for bar in bars), default=0.0) or 1.0
    base = HEIGHT + 12
    drawn = tuple(
        DrawnBar(
            _LEFT + 8 + place * _GROUP,
            HEIGHT * bar.before / most,
            HEIGHT * bar.after / most,
            label,
            f"{text.visible(bar.label)}: before {text.percent(bar.before)}, after {text.percent(bar.after)}",
        )
        for place, (bar, label) in enumerate(zip(bars, _short([bar.label for bar in bars]), strict=True))
    )
    ticks = tuple((base - HEIGHT * part, text.percent(part * most)) for part in (0.5, 1.0))
    return Plot(_LEFT + 24 + _GROUP * max(len(bars), 1), base + _UNDER, base, _BAR, drawn, ticks)


def _short(labels: Sequence[str]) -> list[str]:
    """Labels that fit; those that begin alike show their ends."""
    whole = [text.visible(label) for label in labels]
    cut = [label if len(label) <= _CHARACTERS else f"{label[: _CHARACTERS - 1]}…" for label in whole]
    half = _CHARACTERS // 2
    return [
        short if cut.count(short) == 1 else f"{label[:half]}…{label[-half:]}"
        for label, short in zip(whole, cut, strict=True)
    ]
