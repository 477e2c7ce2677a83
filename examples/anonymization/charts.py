"""Small line charts as SVG: panels side by side, with a legend below."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

COLOURS = ("#b3261e", "#2f6f8f", "#5f8a3a", "#8a5fa8")
DASHES = ("", "", "6 3", "6 3")
PANEL_WIDTH, WIDE, PANEL_HEIGHT = 300, 560, 250
LEFT, RIGHT, TOP, BOTTOM, LEGEND = 52, 12, 36, 44, 30

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: Above.
        series: By name, points from left to right.
        spread: By name, half the length of the bar at each point.
        floor: What the vertical axis starts at; the least value, rounded, where it is None.
    """

    title: str
    series: Mapping[str, Points]
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    floor: float | None = 0.0


def draw(panels: Sequence[Panel], x_label: str, y_label: str, panel_width: int = PANEL_WIDTH) -> str:
    """Panels with one vertical scale for all."""
    values = [
        y + sign * bar
        for panel in panels
        for name, points in panel.series.items()
        for (_, y), bar in zip(points, panel.spread.get(name, [0.0] * len(points)), strict=True)
        for sign in (-1, 1)
    ]
    floor = min((panel.floor for panel in panels if panel.floor is not None), default=min(values))
    marks = _marks(min(floor, min(values)), max(values))
    width, height = panel_width * len(panels), PANEL_HEIGHT + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, number * panel_width, panel_width, marks, x_label, y_label if number == 0 else "")
    x = LEFT
    for name in panels[0].series:
        place = list(panels[0].series).index(name)
        parts.append(_line([(x, PANEL_HEIGHT + 14), (x + 22, PANEL_HEIGHT + 14)], place))
        parts.append(_text(x + 27, PANEL_HEIGHT + 18, name, "start"))
        x += 44 + 6.4 * len(name)
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel, offset: float, width: int, marks: Sequence[float], x_label: str, y_label: str) -> list[str]:
    places = [x for points in panel.series.values() for x, _ in points]
    first, last = min(places), max(places)
    low, high = marks[0], marks[-1]
    floor, edge = PANEL_HEIGHT - BOTTOM, width - RIGHT

    def x_of(x: float) -> float:
        return offset + LEFT + (x - first) / ((last - first) or 1) * (edge - LEFT)

    def y_of(y: float) -> float:
        return floor - (y - low) / ((high - low) or 1) * (floor - TOP)

    parts = [_text(offset + (LEFT + edge) / 2, 20, panel.title, "middle", 'font-weight="bold"')]
    for mark in marks:
        parts.append(
            f'<line x1="{offset + LEFT}" x2="{offset + edge}" y1="{y_of(mark):.1f}" y2="{y_of(mark):.1f}" '
            'stroke="#ddd"/>'
        )
        parts.append(_text(offset + LEFT - 6, y_of(mark) + 4, f"{mark:g}", "end"))
    distinct = sorted(set(places))
    shown = distinct if len(distinct) <= 8 else [m for m in _marks(first, last) if first <= m <= last]
    parts += [_text(x_of(x), floor + 16, f"{x:g}") for x in shown]
    parts.append(_text(offset + (LEFT + edge) / 2, floor + 34, x_label))
    if y_label:
        parts.append(_text(offset + 4, TOP - 12, y_label, "start"))
    for place, (name, points) in enumerate(panel.series.items()):
        parts.append(_line([(x_of(x), y_of(y)) for x, y in points], place))
        for (x, y), bar in zip(points, panel.spread.get(name, ()), strict=False):
            parts.append(
                f'<line x1="{x_of(x):.1f}" x2="{x_of(x):.1f}" y1="{y_of(y - bar):.1f}" y2="{y_of(y + bar):.1f}" '
                f'stroke="{COLOURS[place]}"/>'
            )
    return parts


def _line(points: Sequence[tuple[float, float]], place: int) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{DASHES[place]}"' if DASHES[place] else ""
    return f'<polyline points="{path}" fill="none" stroke="{COLOURS[place]}" stroke-width="1.6"{dash}/>'


def _text(x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{html.escape(words)}</text>'


def _marks(low: float, high: float) -> list[float]:
    """Round numbers from not above `low` to not below `high`."""
    step = 10 ** math.floor(math.log10((high - low) / 4 or 1))
    step = next(step * m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    start, stop = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(start, stop + 1)]
