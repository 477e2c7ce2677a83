"""Numbers put into intervals, where a job says so: exact decimals, intervals closed below and open above.

The intervals of the cuts 18 and 65 are written (-inf,18), [18,65) and [65,inf).

Source: Han, Kamber and Pei, Data Mining: Concepts and Techniques, 3rd ed., sections 3.4.6 and 3.5.3 (equal-frequency
binning; discretisation).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

Cuts = tuple[Decimal, ...]
"""Ascending."""

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_BLANKS: Final = " \t"
_PLAIN_DIGITS: Final = 40  # of a number in an interval's name; others are written with an exponent


def number_of(text: str) -> Decimal | None:
    """The number that a cell is, with a point before decimals and perhaps blanks around it; None where it is none."""
    text = text.strip(_BLANKS)
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def interval_of(number: Decimal, cuts: Cuts) -> int:
    """The position of the interval that holds a number; there is one more than cuts."""
    return bisect_right(cuts, number)


def interval_names(cuts: Cuts) -> list[str]:
    """The intervals as they are written."""
    ends = ["(-inf", *(f"[{_text(cut)}" for cut in cuts)]
    return [f"{low},{high})" for low, high in zip(ends, [*map(_text, cuts), "inf"], strict=True)]


def quantile_cuts(numbers: Sequence[Decimal], counts: NDArray[np.int64], parts: int) -> Cuts:
    """Cuts that put about as many values into each interval: of n values in order, the one with ⌈j·n/k⌉ before it.

    Equal values are never parted, so that intervals may be uneven, and there may be fewer.

    Args:
        numbers: Distinct values, in any order.
        counts: How often each occurs.
        parts: The number k of intervals, 2 or more.

    Returns:
        The cuts, perhaps none; each is one of the values.
    """
    held = [index for index in range(len(numbers)) if counts[index]]
    order = sorted(held, key=numbers.__getitem__)
    upto = np.cumsum(counts[order]) if order else np.zeros(0, np.int64)
    n = int(upto[-1]) if order else 0
    places = [int(np.searchsorted(upto, -(-j * n // parts), side="right")) for j in range(1, parts)]
    found = {numbers[order[place]] for place in places if place < len(order)}
    return tuple(sorted(found - {numbers[order[0]]} if order else found))


def _text(number: Decimal) -> str:
    if not number:
        return "0"
    if abs(number.adjusted()) >= _PLAIN_DIGITS:
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
