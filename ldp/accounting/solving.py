"""Where a falling function crosses zero, from the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

_TOLERANCE: Final = 1e-8
_STEPS: Final = 200
_BEYOND: Final = 0.03
_FIRST_FACTOR: Final = 0.005
_LARGEST_FACTOR: Final = 0.5


def crossing(falling: Callable[[float], float], low: float, high: float, guess: float) -> float:
    """A point at which a falling function is 0 or less, beyond where it crosses 0 by at most a share of 10^-8.

    Where the function does not fall everywhere, the point still is one at which it is 0 or less.

    Args:
        falling: The function; it may be −∞.
        low: Not below 0; returned if the function is 0 or less already here.
        high: Where the function is known to be 0 or less; returned if it is above 0 just below.
        guess: About where it crosses.
    """
    below, above = _bracket(falling, low, high, guess)
    (left, over), (right, under) = below, above
    for step in range(_STEPS):
        if right - left <= _TOLERANCE * right:
            break
        middle = (left + right) / 2
        if over < math.inf and under > -math.inf and step % 4 != 3:
            # A little beyond the secant's root, seen from the nearer end, so that the bracket closes from both sides.
            root = (left * under - right * over) / (under - over)
            nearer = left if over < -under else right
            root += _BEYOND * (root - nearer) + math.copysign(_TOLERANCE / 3 * right, root - nearer)
            middle = min(max(root, left + _TOLERANCE / 3 * right), right - _TOLERANCE / 3 * right)
        value = falling(middle)
        if value <= 0:
            right, under = middle, value
        else:
            left, over = middle, value
    return right


def _bracket(
    falling: Callable[[float], float], low: float, high: float, guess: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two points around the crossing, with the values there; infinite ones where the function was not looked at."""
    below, above = (low, math.inf), (high, -math.inf)
    point, factor = guess, _FIRST_FACTOR
    while below[0] < point < above[0]:
        value = falling(point)
        if value <= 0:
            above = point, value
            if below[0] > low:
                break
            if factor == _LARGEST_FACTOR:  # so far down that it may not cross at all
                below = low, falling(low)
                return below, (above if below[1] > 0 else below)
            point *= 1 - factor
        else:
            below = point, value
            if above[0] < high:
                break
            point *= 1 + factor
        factor = min(3 * factor, _LARGEST_FACTOR)
    return below, above
