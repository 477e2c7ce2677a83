"""Which original values a published cell can cover, read from the cell itself or from `labels.json`.

A cell is a value, an interval `[20, 29]` or `[20, 30)`, a set `{a, b}`, the label of a hierarchy, or `*`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import Scale
from anonymize.verification.rows import SUPPRESSED, key_of

_ITEM = r'(?:"(?:[^"]|"")*"|[^,"\[\](){}]+)'
_INTERVAL = re.compile(rf"\[({_ITEM}), ({_ITEM})([\])])")
_SET = re.compile(rf"\{{{_ITEM}(?:, {_ITEM})*\}}")
_MEMBER = re.compile(rf"({_ITEM})(?:, |$)")
_TRUTH = {"false": 0.0, "true": 1.0}


@dataclass(frozen=True, eq=False)
class Covers:
    """What the published cells of one column can cover.

    Attributes:
        cells: The distinct published cells.
        values: The distinct original values.
        pairs: Shape (cells, values): whether a cell can cover a value.
        opaque: Cells that nothing explains; they are taken to cover anything.
    """

    cells: tuple[str, ...]
    values: tuple[str, ...]
    pairs: NDArray[np.bool_]
    opaque: tuple[str, ...]


def covers(
    cells: Sequence[str],
    values: Sequence[str],
    kind: str,
    scale: Scale | None,
    labels: Mapping[str, Sequence[str]] | None,
) -> Covers:
    """Reads the cells of a quasi-identifier.

    Args:
        cells: The distinct published cells.
        values: The distinct original values.
        kind: Of the column.
        scale: Of the column; names its labels, and the order of an ordinal column.
        labels: By label, the original values that it covers; None where that is not known.
    """
    keys = [key_of(value, kind) for value in values]
    places: dict[object, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    positions = _positions(values, kind, scale)
    pairs, opaque = np.zeros((len(cells), len(values)), np.bool_), []

    def named(texts: Sequence[str]) -> list[int]:
        return [place for text in texts for place in places.get(key_of(text, kind), ())]

    for row, cell in enumerate(cells):
        if cell == SUPPRESSED:
            pairs[row] = True
            continue
        pairs[row, named([cell])] = True
        interval = _INTERVAL.fullmatch(cell)
        ends = _positions([_plain(interval[1]), _plain(interval[2])], kind, scale) if interval else None
        if interval and positions is not None and ends is not None:
            below = positions < ends[1] if interval[3] == ")" else positions <= ends[1]
            pairs[row] |= (positions >= ends[0]) & below
            continue
        if _SET.fullmatch(cell):
            pairs[row, named([_plain(item) for item in _MEMBER.findall(cell[1:-1])])] = True
        if labels is not None and cell in labels:
            pairs[row, named(labels[cell])] = True
        elif labels is None and (interval or scale is None or cell in scale.labels):
            pairs[row] = True
            opaque.append(cell)
    return Covers(tuple(cells), tuple(values), pairs, tuple(opaque))


def reads_as_value(cell: str) -> bool:
    """Whether a cell reads as a single value: it is neither an interval, a set nor `*`."""
    return cell != SUPPRESSED and not _INTERVAL.fullmatch(cell) and not _SET.fullmatch(cell)


def _positions(texts: Sequence[str], kind: str, scale: Scale | None) -> NDArray[np.float64] | None:
    """Shape (texts,): each value's place in their order, by which intervals are named; None without one."""
    try:
        if scale is not None and scale.order is not None:
            ranks = {text: float(rank) for rank, text in enumerate(scale.order)}
            return np.array([ranks[text] for text in texts], np.float64)
        if kind == "date":
            return np.array([datetime.date.fromisoformat(text[:10]).toordinal() for text in texts], np.float64)
        if kind == "boolean":
            return np.array([_TRUTH[str(key_of(text, kind))] for text in texts], np.float64)
        return np.array([float(text) for text in texts], np.float64)
    except (KeyError, ValueError):
        return None


def _plain(item: str) -> str:
    return item[1:-1].replace('""', '"') if item.startswith('"') else item
