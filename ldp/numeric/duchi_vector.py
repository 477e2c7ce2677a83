"""Duchi's mechanism for several numbers: a corner of a cube, chosen by which side of the record it lies on.

    v: the record, each number rounded to −1 or 1 without bias
    T: the corners z of {−1, 1}^d with z·v > 0; with probability p a uniform one of them is reported, otherwise one of
       the rest, B times as large

The paper puts the corners with z·v = 0, which an even d has, into both sides. They then have a higher probability than
the rest, and the mechanism spends ln(e^ε + 1) instead of ε: 1.3133 for ε = 1. Here they belong to the rest only.

Source: Duchi, Jordan and Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", JASA 113, 2018; Wang,
Xiao, Yang et al., ICDE 2019, algorithm 3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows, clean, coin_rows, column_sums, row_bytes
from ldp.arithmetic.sampling import coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.mechanism import Channel, Mechanism, Tally, some
from ldp.numeric.attribute_sampling import check_attributes
from ldp.numeric.interval import Interval, randomly_rounded
from ldp.numeric.vectors import VectorEstimate
from ldp.reports import Field, Reports

_FAIR: Final = Dyadic(1, 1)
_LARGEST_ENUMERATED: Final = 8


class DuchiVector(Mechanism[VectorEstimate]):
    """Reports one bit for each of d numbers, all together with ε; the variance of each is B² − t².

    Args:
        dimensions: d.
        epsilon: The privacy budget ε.
        low: The lower end of every number's range; not to be computed from the data.
        high: The upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.

    Attributes:
        same: How many corners lie on the record's side.
        p: The probability of that side.
        bound: B.
    """

    name: ClassVar[str] = "duchi-vector"

    def __init__(
        self, dimensions: int, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False
    ) -> None:
        super().__init__(epsilon)
        self.dimensions = d = check_attributes(dimensions)
        self.low, self.high, self.clip = low, high, clip
        self.interval = Interval(low, high, clip)
        corners, self.same = 1 << d, ((1 << d) - (0 if d % 2 else math.comb(d, d // 2))) // 2
        grown = exp_below(self.epsilon)
        self._side = Dyadic.floor(self.same * grown / (self.same * grown + corners - self.same), PRECISE_BITS)
        self.p = self._side.fraction
        # The sum over the record's side of one coordinate of the corner times that of v.
        agreement = math.comb(d - 1, d // 2)
        self.bound = 1 / (agreement * (self.p / self.same - (1 - self.p) / (corners - self.same)))

    @property
    def exact_epsilon(self) -> float:
        """Of a corner on one record's side and not on another's."""
        corners = 1 << self.dimensions
        return log_above(self.p / (1 - self.p) * Fraction(corners - self.same, self.same))

    @property
    def layout(self) -> tuple[Field, ...]:
        """The corner's coordinates as bits, 1 for B."""
        return (Field("uint8", row_bytes(self.dimensions)),)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        shares = self.interval.shares(values, self.dimensions)
        ends = np.packbits(randomly_rounded(shares, 1, rng).astype(np.bool_), axis=1, bitorder="little")
        same = coin_flips(self._side, len(ends), rng)
        corners = np.empty_like(ends)
        waiting = np.arange(len(ends))
        while waiting.size:
            drawn = coin_rows(_FAIR, waiting.size, self.dimensions, rng)
            corners[waiting] = drawn
            waiting = waiting[self._on_same_side(drawn, ends[waiting]) != same[waiting]]
        return (corners,)

    def _on_same_side(self, corners: Rows, ends: Rows) -> NDArray[np.bool_]:
        differing = np.bitwise_count(corners ^ ends).sum(axis=1, dtype=np.int64)
        same: NDArray[np.bool_] = 2 * differing < self.dimensions
        return same

    def _valid(self, reports: Reports) -> bool:
        return clean(reports.fields[0], self.dimensions)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a number."""
        return (self.dimensions,)

    def tally(self, reports: Reports) -> Tally:
        """How many corners have each coordinate at B."""
        return column_sums(reports.fields[0], self.dimensions)

    def estimate(self, tally: Tally, n: int) -> VectorEstimate:
        """The means of the corners; variances with the squared mean for the unknown mean square, which is the most."""
        some(n)
        means = float(self.bound) * (2 * tally - n) / n
        variances = (float(self.bound) ** 2 - np.clip(means, -1, 1) ** 2) / n
        interval = self.interval
        scaled = self.low + interval.radius * (means + 1)
        return VectorEstimate(n, scaled, variances * interval.radius**2, self.low, self.high)

    def blanket(self) -> Blanket:
        """A uniform corner; opposite records have no corner on both sides."""
        corners = 1 << self.dimensions
        return Blanket.between(corners * (1 - self.p) / (corners - self.same), corners * self.p / self.same)

    def channel(self) -> Channel:
        """From the cube's corners to its corners, in the order of their bits as numbers."""
        if self.dimensions > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"2^{self.dimensions} corners are not enumerated")
        corners = 1 << self.dimensions
        near, far = self.p / self.same, (1 - self.p) / (corners - self.same)
        return [
            [near if 2 * (v ^ z).bit_count() < self.dimensions else far for z in range(corners)] for v in range(corners)
        ]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The corners as numbers."""
        return reports.fields[0][:, 0].astype(np.int64)
