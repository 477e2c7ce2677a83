"""Draws the picture of the README from the demo's result: `python make_rules.py ../../demo-out/result`."""

from __future__ import annotations

import csv
import html
import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 64, 24, 56, 56
SUPPORTS, CONFIDENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4), (0.4, 0.6, 0.8, 1.0)
LABELLED = {  # rule: where its label stands
    ("third-party agriculture", "tractor"): (14, 4),
    ("car, fire, tractor", "third-party agriculture"): (-2, -16),
    ("car, fire", "private third-party"): (-14, -14),
    ("private third-party", "fire"): (-14, -14),
}


def x_of(support: float) -> float:
    """On a logarithmic axis."""
    share = math.log(support / 0.0095) / math.log(0.45 / 0.0095)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def y_of(confidence: float) -> float:
    """From 0.3 to 1."""
    return HEIGHT - BOTTOM - (confidence - 0.3) / 0.72 * (HEIGHT - TOP - BOTTOM)


def text(x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> str:
    """A piece of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{html.escape(words)}</text>'


def circle(rule: dict[str, str]) -> str:
    """A rule as a point: the larger and redder, the higher its lift."""
    lift = float(rule["lift"])
    colour = "#b3261e" if lift > 5 else "#2f6f8f"
    radius = 3.5 + 2 * math.log2(max(lift, 1))
    x, y = x_of(float(rule["support"])), y_of(float(rule["confidence"]))
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.55" stroke="{colour}"/>'


def label(rule: dict[str, str]) -> str:
    """The words beside a few of the points."""
    sides = tuple(", ".join(json.loads(rule[side])) for side in ("antecedent", "consequent"))
    if sides not in LABELLED:
        return ""
    dx, dy = LABELLED[sides]
    x, y = x_of(float(rule["support"])) + dx, y_of(float(rule["confidence"])) + dy
    return text(x, y, f"{sides[0]} ⇒ {sides[1]}", "end" if x > WIDTH / 2 else "start", 'class="label"')


def draw(rules: list[dict[str, str]]) -> str:
    """The whole picture."""
    floor, edge = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>The rules of the demo: confidence over support, size by lift</title>",
        "<style>text{font:13px sans-serif;fill:#333}.head{font-size:16px;font-weight:bold}"
        ".label{font-size:12px;fill:#111}.grid{stroke:#e3e3e3}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(
            LEFT, 26, f"{len(rules)} rules over the policies of three insurers, no rows pooled", "start", 'class="head"'
        ),
    ]
    for support in SUPPORTS:
        parts.append(f'<line class="grid" x1="{x_of(support):.1f}" x2="{x_of(support):.1f}" y1="{TOP}" y2="{floor}"/>')
        parts.append(text(x_of(support), floor + 20, f"{support:g}"))
    for confidence in CONFIDENCES:
        y = y_of(confidence)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{edge}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(LEFT - 10, y + 4, f"{confidence:g}", "end"))
    parts += [
        text((LEFT + edge) / 2, HEIGHT - 14, "support (share of all households)"),
        text(LEFT - 10, TOP - 8, "confidence", "start"),
        text(edge, TOP - 8, "size and red: lift", "end"),
    ]
    parts += [circle(rule) for rule in rules]
    parts += [found for rule in rules if (found := label(rule))]
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Reads rules.csv of a result folder and writes rules.svg beside this script."""
    with (Path(sys.argv[1]) / "rules.csv").open(encoding="utf-8", newline="") as file:
        rules = list(csv.DictReader(file))
    (Path(__file__).parent / "rules.svg").write_text(draw(rules), encoding="utf-8")


if __name__ == "__main__":
    main()
