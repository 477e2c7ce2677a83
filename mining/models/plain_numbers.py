"""Numbers of a column that are written plainly, read all at once as whole numbers of millionths: exact as decimals are.

A text of at most 9 digits before the point and 6 behind it is a whole number n of millionths, below 10^15. The double
that is nearest to it, times 10^6, differs from n by less than n · 2^-52 < 1/2, so that rounding gives n.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_PLAIN: Final = r"\A-?[0-9]{1,9}(\.[0-9]{1,6})?\z"
_SCALE: Final = 10**6
_MOST: Final = 1 << 62

Millionths = NDArray[np.int64]


def plain_numbers(texts: pa.Array) -> tuple[NDArray[np.bool_], Millionths]:
    """Which of some texts are plain numbers, and these, in order."""
    plain = pc.match_substring_regex(texts, _PLAIN)
    floats = texts.filter(plain).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(plain.to_numpy(zero_copy_only=False), bool), np.rint(floats * _SCALE).astype(np.int64)


def intervals_of(numbers: Millionths, cuts: Sequence[Decimal]) -> NDArray[np.int64]:
    """The position of the interval that holds each, as of `mining.data.items.discretisation.interval_of`."""
    ends = [min(max(ceil(Fraction(cut) * _SCALE), -_MOST), _MOST) for cut in cuts]
    return np.searchsorted(np.array(ends, np.int64), numbers, side="right").astype(np.int64)


def steps_of(numbers: Millionths, low: Decimal, high: Decimal, steps: int) -> NDArray[np.int64] | None:
    """How many of the steps between two bounds each is above the lower one, rounded, a half to the even one.

    Returns:
        None where the bounds are no whole millionths, or do not fit into 62 bits with the steps.
    """
    begin, end = Fraction(low) * _SCALE, Fraction(high) * _SCALE
    width = end - begin
    if begin.denominator != 1 or end.denominator != 1 or max(abs(begin), abs(end), width * steps) >= _MOST:
        return None
    above = np.clip(numbers, int(begin), int(end)) - np.int64(int(begin))
    whole, rest = np.divmod(above * np.int64(steps), np.int64(int(width)))
    more = 2 * rest - np.int64(int(width))
    found: NDArray[np.int64] = whole + ((more > 0) | ((more == 0) & (whole % 2 == 1)))
    return found
