"""Duchi's mechanism for one number: an end of the range, by randomised response.

Source: Duchi, Jordan and Wainwright, "Minimax Optimal Procedures for Locally Private Estimation", JASA 113, 2018.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.sampling import coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.mechanism import Channel, Tally
from ldp.numeric.interval import Points
from ldp.numeric.mean import NumericMechanism
from ldp.reports import Field, Reports


class Duchi(NumericMechanism):
    """Rounds the number to an end of the range, without bias, and reports that end with probability e^ε / (e^ε + 1).

    A report means −C or C, C = (e^ε + 1)/(e^ε − 1), and has variance C² − t². One bit; the best mechanism for
    ε up to 1.29, where `Piecewise` gets the better worst case.
    """

    name: ClassVar[str] = "duchi"

    def __init__(self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False) -> None:
        super().__init__(epsilon, low, high, clip)
        grown = exp_below(self.epsilon)
        self._told = Dyadic.floor(grown / (grown + 1), PRECISE_BITS)
        self.p = self._told.fraction
        self.bound = 1 / (2 * self.p - 1)
        self.steps = 1
        # Rounding to the ends is part of it: outputs are ±C, so the variance is C² − t² for every t.
        self.constant, self.slope = self.bound**2, Fraction(-1)

    @property
    def exact_epsilon(self) -> float:
        """ln(p / (1 − p))."""
        return log_above(self.p / (1 - self.p))

    @property
    def layout(self) -> tuple[Field, ...]:
        """1 for the upper end, 0 for the lower one."""
        return (Field("uint8"),)

    def _perturb_points(self, points: Points, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return (np.where(coin_flips(self._told, len(points), rng), points, 1 - points),)

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] <= 1))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The number of upper ends."""
        return (1,)

    def tally(self, reports: Reports) -> Tally:
        """How many reports name the upper end."""
        return np.array([np.count_nonzero(reports.fields[0])])

    def moments(self, tally: Tally, n: int) -> tuple[float, float | None]:
        """C times the excess of upper ends; all outputs have the same square, so that of values stays unknown."""
        return float(self.bound) * (2 * int(tally[0]) - n) / n, None

    def blanket(self) -> Blanket:
        """A fair coin."""
        return Blanket.between(2 * (1 - self.p), 2 * self.p)

    def channel(self) -> Channel:
        """Of the two ends."""
        return [[self.p, 1 - self.p], [1 - self.p, self.p]]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The ends named."""
        return reports.fields[0].astype(np.int64)
