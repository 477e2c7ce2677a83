"""The Laplace mechanism for one number, in whole steps of a grid.

Source: Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data Analysis", TCC 2006.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.mechanism import Channel, Tally
from ldp.numeric.geometric import FineGeometric
from ldp.numeric.interval import LARGEST_GRID, Points, check_grid
from ldp.numeric.mean import NumericMechanism
from ldp.reports import Field, Reports

_ENUMERATED_RANGES: Final = 66  # one more than the noise's longest table
_ENDS: Final = np.iinfo(np.int32)


class DiscreteLaplace(NumericMechanism):
    """Adds two-sided geometric noise whose scale is the range's width over ε.

    The variance is 8/ε² on the scale −1 … 1 whatever the value is; `Hybrid` has less for every ε here. It is worth its
    noise where the reports themselves must be numbers on the data's scale, of a known and simple error.
    A report beyond 32 bits is cut to their ends, which costs no privacy and happens with a probability below 10^-28.

    Args:
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        grid: Steps from one end of the range to the other.
    """

    name: ClassVar[str] = "laplace"

    def __init__(
        self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False, grid: int = LARGEST_GRID
    ) -> None:
        super().__init__(epsilon, low, high, clip)
        self.grid = self.steps = check_grid(grid)
        self.noise = FineGeometric(grid, exp_below(self.epsilon))
        self.constant, self.slope = self.noise.variance * Fraction(2, grid) ** 2, Fraction(0)

    @property
    def exact_epsilon(self) -> float:
        """Of outputs on the same side of both values, which are a range apart."""
        return log_above(self.noise.worst_ratio)

    @property
    def layout(self) -> tuple[Field, ...]:
        """Steps from the range's lower end."""
        return (Field("int32"),)

    def _perturb_points(self, points: Points, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return (np.clip(points + self.noise.draw(len(points), rng), _ENDS.min, _ENDS.max),)

    def numbers(self, reports: Reports) -> NDArray[np.float64]:
        """The noisy numbers that reports hold, on the data's scale; shape (n,)."""
        return self.low + (self.high - self.low) * (reports.fields[0] / self.grid)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """A sum."""
        return (1,)

    def tally(self, reports: Reports) -> Tally:
        """Of the steps."""
        return np.array([reports.fields[0].sum(dtype=np.int64)])

    def moments(self, tally: Tally, n: int) -> tuple[float, float | None]:
        """The mean of the noisy numbers."""
        return 2 * int(tally[0]) / n / self.grid - 1, None

    def blanket(self) -> Blanket:
        """What all noise has in common that is centred within the range: its side beyond the middle, both ways.

        Its weight is e^(−ε/2). Ratios are taken at their ends only, between which those of ends of the range really
        lie: an accountant's ε is too large by 5 % for ε = 1, and by 18 % for ε = 4.
        """
        middle = self.grid // 2
        weight = 2 * self.noise.tail(middle) - self.noise.probability(middle)
        return Blanket.between(weight, weight * self.noise.worst_ratio)

    def channel(self) -> Channel:
        """From the grid's points to the steps, cut to ends beyond which the noise's table only repeats itself."""
        reach, top = _ENUMERATED_RANGES * self.grid, self.grid
        inside = [self.noise.probability(k) for k in range(reach)]
        tails = [self.noise.tail(reach)]
        for k in range(1, top + 1):
            tails.append(tails[-1] + inside[reach - k])  # k steps earlier than `reach`
        return [
            [tails[top - point], *(inside[abs(y - point)] for y in range(top - reach + 1, reach)), tails[point]]
            for point in range(top + 1)
        ]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The steps from the lower end of those that are enumerated, cut to them."""
        reach = _ENUMERATED_RANGES * self.grid
        return np.clip(reports.fields[0].astype(np.int64), self.grid - reach, reach) - (self.grid - reach)
