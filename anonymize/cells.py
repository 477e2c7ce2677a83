"""Published cells: how generalised values are written, and read back.

A cell is a value as it was, an interval `[20, 29]` or `[20, 30)`, a set `{a, b}`, the label of a hierarchy, or `*`.
Ends and members that hold a comma, a bracket, a quote or outer blanks are written in quotes, their own quotes doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from anonymize.columns import Value, text_of

SUPPRESSED: Final = "*"
"""A cell that reveals nothing."""

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
    """What a published cell means."""
    interval = _INTERVAL.fullmatch(text)
    if interval:
        return Interval(_plain(interval[1]), _plain(interval[2]), interval[3] == ")")
    if _SET.fullmatch(text):
        return Members(tuple(map(_plain, _MEMBERS.findall(text[1:-1]))))
    return Label(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _plain(item: str) -> str:
    return item[1:-1].replace('""', '"') if item.startswith('"') else item
