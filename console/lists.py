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
    """The part of a list that an address asks for by `page`; the nearest there is."""
    parts = max(1, -(-len(rows) // PART))
    asked = query.get("page", "1")
    number = min(max(int(asked), 1), parts) if asked.isdecimal() and len(asked) < 10 else 1
    return ListPart(rows[(number - 1) * PART : number * PART], number, parts, len(rows))
