"""The public range of numbers, and the grid that they are rounded to before a mechanism sees them.

A range that is computed from the data would reveal something of the data: it is a parameter. Rounding is random and
without bias, and happens before the mechanism's own randomness, so whatever floating point does there costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]
Points = NDArray[np.int64]
"""Numbers of grid points, 0 … steps."""

LARGEST_GRID: Final = 1 << 15
"""Steps from one end of a range to the other; a report of a windowed mechanism then fits 16 bits."""

_FRACTION_BITS: Final = 53


@dataclass(frozen=True, slots=True)
class Interval:
    """The range low … high.

    Attributes:
        low: The least number.
        high: The largest one.
        clip: Whether numbers outside are moved to the nearer end; otherwise they are refused.

    Raises:
        ConfigurationError: The ends are not finite, or not in their order.
    """

    low: float
    high: float
    clip: bool = False

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends) or self.high - self.low <= 0:
            raise ConfigurationError(f"a range needs two finite ends, the lower one first, not {ends}")
        if not math.isfinite(self.high - self.low):
            raise ConfigurationError(f"the range {ends} is too wide for floating point; measure in larger units")

    @property
    def radius(self) -> float:
        """Half of the range's width."""
        return (self.high - self.low) / 2

    def inside(self, values: ArrayLike, width: int | None = None) -> Floats:
        """Numbers that lie within the range, some of them moved there if the range clips.

        Args:
            values: Shape (n,), or (n, width) if a width is given.
            width: How many numbers a record has.

        Raises:
            InputDataError: They have another shape, are no numbers, or lie outside a range that does not clip.
        """
        array = _floats(values)
        if array.size == 0:
            array = array.reshape((0,) if width is None else (0, width))
        if array.ndim == 0 or array.shape[1:] != (() if width is None else (width,)):
            form = "a list of numbers" if width is None else f"records of {width} numbers each"
            raise InputDataError(f"values must be {form}, not an array of shape {array.shape}")
        if not np.isfinite(array).all():
            raise InputDataError(
                "a value is missing or infinite (NaN or inf); leave such users out or fill their values"
            )
        if not self.clip and array.size and not self.low <= array.min() <= array.max() <= self.high:
            raise InputDataError(
                f"a value lies outside {self.low:g} to {self.high:g}; widen the public range or ask for clipping"
            )
        return np.clip(array, self.low, self.high)

    def shares(self, values: ArrayLike, width: int | None = None) -> Floats:
        """Where numbers lie between the ends, 0 … 1; arguments and errors as of `inside`."""
        return (self.inside(values, width) - self.low) / (self.high - self.low)

    def at(self, scaled: float) -> float:
        """The number whose place on the scale −1 … 1 is given."""
        return self.low + self.radius * (scaled + 1)


def check_grid(grid: int) -> int:
    """The number of a grid's steps, if it is one that mechanisms work with.

    Raises:
        ConfigurationError: It is outside 2 … 32,768, or an odd number.
    """
    if not 2 <= grid <= LARGEST_GRID or grid % 2:
        raise ConfigurationError(f"a grid has an even number of steps between 2 and {LARGEST_GRID:,}, not {grid:,}")
    return grid


def randomly_rounded(shares: Floats, steps: int, rng: Randomness) -> Points:
    """Grid points whose expectations are the given shares times `steps`; any shape.

    Each share goes to one of the two points next to it, to the nearer one with the higher probability.
    """
    scaled = shares * steps
    below = np.minimum(np.floor(scaled), steps - 1)
    words = rng.uint64(shares.size).reshape(shares.shape) >> np.uint64(64 - _FRACTION_BITS)
    ups = words < ((scaled - below) * (1 << _FRACTION_BITS)).astype(np.uint64)
    return below.astype(np.int64) + ups


def rounding_variance(shares: Floats, steps: int) -> Floats:
    """What `randomly_rounded` adds to the variance of values on the scale −1 … 1, at most 1 / steps²."""
    scaled = shares * steps
    above = scaled - np.floor(scaled)
    return above * (1 - above) * (2 / steps) ** 2


def _floats(values: ArrayLike) -> Floats:
    try:
        array = np.asarray(values)
        texts = array.dtype == object and any(isinstance(each, str | bytes) for each in array.ravel())
        if array.dtype.kind not in "iufO" or texts:
            raise ValueError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputDataError("values must be numbers in a rectangular array") from None
