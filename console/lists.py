"""Lists that are too long for one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

PART: Final = 50


class ListPart(NamedTuple):
    """One part of a list.

    Attributes:
        rows: What is in it.
        number: Which one, from 1.
        parts: How many there are.
        total: Rows of all of them.
    """

    rows: Sequence[Any]
    number: int
    parts: int
    total: int


def part_of(rows: Sequence[Any], query: Mapping[str, str]) -> ListPart:
    """The part of a list that an address asks for."""
    number, parts = number_of(len(rows), query)
    return ListPart(rows[(number - 1) * PART : number * PART], number, parts, len(rows))


def number_of(total: int, query: Mapping[str, str]) -> tuple[int, int]:
    """The part of so many rows that an address asks for by `page`, or the nearest there is; and how many there are."""
    parts = max(1, -(-total // PART))
    asked = query.get("page", "1")
    return min(max(int(asked), 1), parts) if asked.isdecimal() and len(asked) < 10 else 1, parts
