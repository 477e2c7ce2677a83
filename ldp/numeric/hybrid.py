"""The hybrid mechanism (HM): the piecewise mechanism or Duchi's, by the toss of a coin.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section III-C.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import FAST_BITS, Dyadic
from ldp.arithmetic.sampling import coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below
from ldp.mechanism import Channel, Tally
from ldp.numeric.duchi import Duchi
from ldp.numeric.interval import LARGEST_GRID, Points, randomly_rounded
from ldp.numeric.mean import NumericMechanism
from ldp.numeric.piecewise import Piecewise
from ldp.reports import Field, Reports

_ROOT: Final = math.sqrt(241)
THRESHOLD: Final = math.log((-5 + 2 * math.cbrt(6353 - 405 * _ROOT) + 2 * math.cbrt(6353 + 405 * _ROOT)) / 27)
"""ε* = 0.6094: up to it Duchi's mechanism alone is best."""


class Hybrid(NumericMechanism):
    """Takes the piecewise mechanism with probability α = 1 − e^(−ε/2), otherwise Duchi's; up to ε* always Duchi's.

    The report says which one it was, which does not depend on the value. The variance is then the same for all values
    and never above either mechanism's worst: the best choice where nothing is known of the values.

    Args:
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        grid: Steps from one end of the range to the other.
    """

    name: ClassVar[str] = "hm"

    def __init__(
        self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False, grid: int = LARGEST_GRID
    ) -> None:
        super().__init__(epsilon, low, high, clip)
        self._piecewise = Piecewise(epsilon, low, high, clip, grid)
        self._duchi = Duchi(epsilon, low, high, clip)
        self.grid = self.steps = self._piecewise.grid
        mixed = 1 - 1 / exp_below(Fraction(self.epsilon) / 2) if self.epsilon > THRESHOLD else Fraction(0)
        self._coin = Dyadic.floor(mixed, FAST_BITS)
        self.alpha = self._coin.fraction
        self.constant = self.alpha * self._piecewise.constant + (1 - self.alpha) * self._duchi.constant
        self.slope = self.alpha * self._piecewise.slope + (1 - self.alpha) * self._duchi.slope

    @property
    def exact_epsilon(self) -> float:
        """The larger one of those that are in use."""
        if self.alpha == 0:
            return self._duchi.exact_epsilon
        return max(self._piecewise.exact_epsilon, self._duchi.exact_epsilon)

    @property
    def layout(self) -> tuple[Field, ...]:
        """A cell of the piecewise mechanism; behind them, the two ends of Duchi's."""
        return (Field("uint16"),)

    @property
    def cells(self) -> int:
        """How many outputs the piecewise mechanism has, if it is used: at most 2^16 − 2 above ε*."""
        return self._piecewise.windows.cells if self.alpha else 0

    def _perturb_points(self, points: Points, rng: Randomness) -> tuple[NDArray[Any], ...]:
        piecewise = coin_flips(self._coin, len(points), rng)
        codes = np.empty(len(points), dtype=np.int64)
        (codes[piecewise],) = self._piecewise._perturb_points(points[piecewise], rng)
        ends = randomly_rounded(points[~piecewise] / self.grid, 1, rng)
        codes[~piecewise] = self.cells + self._duchi._perturb_points(ends, rng)[0]
        return (codes,)

    def blanket(self) -> Blanket:
        """The two mechanisms' blankets; which one it was is public."""
        parts = [(1 - self.alpha, self._duchi.blanket())]
        if self.alpha:
            parts.append((self.alpha, self._piecewise.blanket()))
        return Blanket.mixture(parts)

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.cells + 2))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The piecewise mechanism's number of reports and sums, and Duchi's."""
        return (4,)

    def tally(self, reports: Reports) -> Tally:
        """The two mechanisms' tallies."""
        codes = reports.fields[0].astype(np.int64)
        cells = Reports(self.fingerprint, (codes[codes < self.cells],))
        ends = Reports(self.fingerprint, (codes[codes >= self.cells] - self.cells,))
        return np.array([len(cells), *self._piecewise.tally(cells), *self._duchi.tally(ends)])

    def moments(self, tally: Tally, n: int) -> tuple[float, float | None]:
        """The mean over all reports; the mean square from those of the piecewise mechanism."""
        cells = int(tally[0])
        total, square = 0.0, None
        if cells:
            mean, square = self._piecewise.moments(tally[1:3], cells)
            total += cells * mean
        if n > cells:
            total += (n - cells) * self._duchi.moments(tally[3:], n - cells)[0]
        return total / n, square

    def channel(self) -> Channel:
        """From the grid's points to the cells and the two ends."""
        lower, upper = self._duchi.channel()
        rows = []
        for point, row in enumerate(self._piecewise.channel()):
            up = Fraction(point, self.grid)
            ends = [(1 - self.alpha) * ((1 - up) * a + up * b) for a, b in zip(lower, upper, strict=True)]
            rows.append([self.alpha * p for p in row[: self.cells]] + ends)
        return rows

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The codes sent."""
        return reports.fields[0].astype(np.int64)
