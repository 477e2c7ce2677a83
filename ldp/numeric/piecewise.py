"""The piecewise mechanism (PM): a number near the true one with a higher probability.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section III-B; here on a grid of whole cells, since real numbers in floating point are not private (Mironov,
CCS 2012).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import exp_below
from ldp.mechanism import Channel, Tally
from ldp.numeric.interval import LARGEST_GRID, Points, check_grid
from ldp.numeric.mean import NumericMechanism
from ldp.numeric.windows import Windows
from ldp.reports import Field, Reports


class Piecewise(NumericMechanism):
    """Reports a cell of a row that reaches beyond the range; a window of cells about the value is e^ε times likelier.

    With s = e^(ε/2) the row represents −C … C, C = (s + 1)/(s − 1), and the window has 1/s of the range's cells. The
    variance is t²/(s − 1) + (s + 3)/(3(s − 1)²) but for the grid, which adds at most (1 + b)/grid²: 10^-9 parts.

    Args:
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        grid: Steps from one end of the range to the other.
    """

    name: ClassVar[str] = "pm"

    def __init__(
        self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False, grid: int = LARGEST_GRID
    ) -> None:
        super().__init__(epsilon, low, high, clip)
        self.grid = self.steps = check_grid(grid)
        width = max(1, round(grid * math.exp(-self.epsilon / 2)))
        self.windows = Windows(grid, width, exp_below(self.epsilon))
        shrinking = self.windows.shrinking
        self.constant = self.windows.centred_variance() / (shrinking * grid) ** 2
        self.slope = (1 - shrinking) / shrinking

    @property
    def exact_epsilon(self) -> float:
        """Of a cell within one value's window and outside another's."""
        return self.windows.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """The number of a cell."""
        return (Field("uint16"),)

    def _perturb_points(self, points: Points, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return (self.windows.draw(points, rng),)

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.windows.cells))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """A sum and a sum of squares."""
        return (2,)

    def tally(self, reports: Reports) -> Tally:
        """Of the cells' places, in half cells from the row's middle: below 2^16, so squares of 2^31 reports fit."""
        places = 2 * reports.fields[0].astype(np.int64) - (self.windows.cells - 1)
        return np.array([places.sum(), places @ places])

    def moments(self, tally: Tally, n: int) -> tuple[float, float | None]:
        """The mean place over what the window shrinks it by, and the mean square without the noise's part."""
        scale = float(self.windows.shrinking * self.grid)
        mean, square = int(tally[0]) / n / scale, int(tally[1]) / n / scale**2
        return mean, (square - float(self.constant)) / float(1 + self.slope)

    def blanket(self) -> Blanket:
        """That of the window."""
        return self.windows.blanket()

    def channel(self) -> Channel:
        """From the grid's points to the cells."""
        return self.windows.channel()

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The cells' numbers."""
        return reports.fields[0].astype(np.int64)
