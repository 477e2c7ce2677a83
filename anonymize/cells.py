"""Published cells: how generalised values are written, and read back.

A cell is a value as it was, an interval `[20, 29]` or `[20, 30)`, a set `{a, b}`, the label of a hierarchy, or `*`.
Ends and members that hold a comma, a bracket, a quote or outer blanks stand in quotes, their own quotes doubled.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column, Value, number_of, text_of
from anonymize.hierarchies.hierarchy import TOP, Hierarchy
from link.errors import InputDataError

SUPPRESSED: Final = TOP
"""A cell that tells nothing."""

_ITEM: Final = r'(?:"(?:[^"]|"")*"|[^,"\[\](){}]+)'
_INTERVAL: Final = re.compile(rf"\[({_ITEM}), ({_ITEM})([\])])")
_SET: Final = re.compile(rf"\{{{_ITEM}(?:, {_ITEM})*\}}")
_MEMBERS: Final = re.compile(rf"({_ITEM})(?:, |$)")
_QUOTED: Final = re.compile(r'[,"\[\](){}]|^\s|\s$|^$')


@dataclass(frozen=True)
class Interval:
    """All values from `low` to `high`, which belongs to it unless it is `half_open`; ends are text."""

    low: str
    high: str
    half_open: bool = False


@dataclass(frozen=True)
class Members:
    """Some values, as text."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Label:
    """A value as it was, a hierarchy's label, or `*`."""

    text: str


Cell = Interval | Members | Label


def format_interval(low: Value, high: Value, *, half_open: bool = False) -> str:
    """`[low, high]`, or `[low, high)` if `half_open`; one value alone where both ends are the same."""
    first, last = text_of(low), text_of(high)
    if first == last and not half_open:
        return first
    return f"[{_quoted(first)}, {_quoted(last)}{')' if half_open else ']'}"


def format_set(values: Iterable[Value]) -> str:
    """`{a, b}` in the order given; a value alone where there is one."""
    texts = list(map(text_of, values))
    return texts[0] if len(texts) == 1 else "{" + ", ".join(map(_quoted, texts)) + "}"


def parse(text: str) -> Cell:
    """What a published cell tells."""
    interval = _INTERVAL.fullmatch(text)
    if interval:
        return Interval(_plain(interval[1]), _plain(interval[2]), interval[3] == ")")
    if _SET.fullmatch(text):
        return Members(tuple(map(_plain, _MEMBERS.findall(text[1:-1]))))
    return Label(text)


def covered(text: str, column: Column, hierarchy: Hierarchy | None = None) -> NDArray[np.bool_]:
    """Which values a published cell may stand for.

    A text that is a value of the column as well as a label stands for all that either tells.

    Args:
        text: The cell.
        column: With the values that are asked about.
        hierarchy: Whose labels the column's cells may bear.

    Returns:
        Shape (values of the domain,).

    Raises:
        InputDataError: The cell is neither a value, an interval, a set, a label of the hierarchy nor `*`.
    """
    if text == SUPPRESSED:
        return np.ones(column.size, bool)
    texts = np.array(column.texts, object)
    found = np.asarray(texts == text, bool)
    known = bool(found.any())
    if hierarchy is not None:
        leaves = hierarchy.align(column)
        for labels, codes in zip(hierarchy.labels, hierarchy.maps, strict=True):
            if text in labels:
                known = True
                found |= codes[leaves] == labels.index(text)
    if known:
        return found
    cell = parse(text)
    if isinstance(cell, Members):
        return np.isin(texts, cell.values)
    if isinstance(cell, Label) and column.kind in ("numeric", "date"):
        _place(text, column)  # a value of the kind that the column does not hold
        return found
    if isinstance(cell, Label) or not column.is_ordered:
        raise InputDataError(f'The cell "{text}" of column "{column.name}" is no value and no label of its hierarchy.')
    numbers, low, high = column.numbers, _place(cell.low, column), _place(cell.high, column)
    return (numbers >= low) & ((numbers < high) if cell.half_open else (numbers <= high))


def _place(text: str, column: Column) -> float:
    """A value on the scale of the column's numbers."""
    try:
        if column.kind == "numeric":
            return float(number_of(text))
        if column.kind == "date":
            return float(datetime.date.fromisoformat(text).toordinal())
        return float(column.numbers[column.texts.index(text)])
    except ValueError:
        raise InputDataError(f'The cell value "{text}" is no {column.kind} value of column "{column.name}".') from None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _plain(item: str) -> str:
    return item[1:-1].replace('""', '"') if item.startswith('"') else item
