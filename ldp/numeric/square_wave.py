"""Square wave (SW): a number's distribution, not only its mean.

Values are put into bins first, and bins are reported (the paper's discrete form), so that all probabilities are exact.

Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li, "Estimating Numerical Distributions under Local Differential
Privacy", SIGMOD 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import exp_below
from ldp.expectation import bayes_steps
from ldp.mechanism import Channel, Mechanism, Tally, some
from ldp.numeric.interval import Floats, Interval, Points
from ldp.numeric.windows import Windows
from ldp.reports import Field, Reports
from link.errors import ConfigurationError

MOST_BINS: Final = 1 << 14

_TOLERANCE: Final = 1e-3  # in nats, as in the paper
_MOST_STEPS: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class DistributionEstimate:
    """An estimated distribution over bins of equal width.

    Attributes:
        n: How many reports.
        edges: Shape (bins + 1,): where bins begin and end.
        shares: Shape (bins,): their probabilities; not negative, they add up to 1.
    """

    n: int
    edges: Floats
    shares: Floats

    @property
    def centres(self) -> Floats:
        """The bins' middles, shape (bins,)."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def mean(self) -> float:
        """Of the distribution."""
        return float(self.shares @ self.centres)

    @property
    def variance(self) -> float:
        """Of the distribution, values being spread evenly within bins."""
        width = float(self.edges[1] - self.edges[0])
        return float(self.shares @ (self.centres - self.mean) ** 2) + width**2 / 12

    def cumulative(self, values: ArrayLike) -> Floats:
        """The estimated shares of users whose number is at most each of some values."""
        found: Floats = np.interp(
            np.asarray(values, dtype=np.float64), self.edges, np.concatenate([[0.0], np.cumsum(self.shares)])
        )
        return found

    def quantiles(self, probabilities: ArrayLike) -> Floats:
        """The numbers that given shares of users do not exceed.

        Raises:
            ConfigurationError: A probability is not between 0 and 1.
        """
        wanted = np.asarray(probabilities, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ConfigurationError("a quantile is asked for by a probability between 0 and 1")
        sums = np.cumsum(self.shares)
        place = np.minimum(np.searchsorted(sums, wanted * sums[-1], side="left"), len(sums) - 1)
        inside = np.divide(
            wanted * sums[-1] - (sums[place] - self.shares[place]),
            self.shares[place],
            out=np.zeros(place.shape),
            where=self.shares[place] > 0,
        )
        found: Floats = self.edges[place] + inside * (self.edges[1] - self.edges[0])
        return found


class SquareWave(Mechanism[DistributionEstimate]):
    """Reports a cell near the value's bin with a higher probability, and estimates all bins by maximum likelihood.

    The wave's half width is b = (ε·e^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε)) of the range, for which a report is most
    informative.

    Args:
        epsilon: The privacy budget ε.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        bins: Into how many bins the range is cut; about √n of them.
        smooth: EMS, where neighbouring bins are averaged after each step, which keeps EM from following the noise.
            False gives the maximum of the likelihood, with the spikes that it has.
    """

    name: ClassVar[str] = "sw"

    def __init__(
        self,
        epsilon: float,
        low: float = 0.0,
        high: float = 1.0,
        clip: bool = False,
        bins: int = 256,
        smooth: bool = True,
    ) -> None:
        super().__init__(epsilon)
        if not 2 <= bins <= MOST_BINS:
            raise ConfigurationError(f"a range is cut into 2 to {MOST_BINS:,} bins, not {bins:,}")
        self.low, self.high, self.clip, self.bins, self.smooth = low, high, clip, bins, smooth
        self.interval = Interval(low, high, clip)
        self.half_width = optimal_half_width(self.epsilon)
        self.windows = Windows(bins - 1, max(1, round(2 * self.half_width * bins)), exp_below(self.epsilon))

    @property
    def exact_epsilon(self) -> float:
        """Of a cell within one bin's window and outside another's."""
        return self.windows.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """The number of a cell."""
        return (Field("uint16"),)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return (self.windows.draw(self.binned(values), rng),)

    def binned(self, values: ArrayLike) -> Points:
        """The bins of values, 0 … bins − 1.

        Raises:
            InputDataError: A value is no finite number, or outside the range.
        """
        return np.minimum((self.interval.shares(values) * self.bins).astype(np.int64), self.bins - 1)

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.windows.cells))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a cell."""
        return (self.windows.cells,)

    def tally(self, reports: Reports) -> Tally:
        """How often each cell was reported."""
        return np.bincount(reports.fields[0], minlength=self.windows.cells).astype(np.int64, copy=False)

    def estimate(self, tally: Tally, n: int) -> DistributionEstimate:
        """The distribution under which these reports are likeliest, smoothed or not.

        Steps end when the log-likelihood changes by less than 10^-3, or without smoothing 10^-3·e^ε, as in the paper:
        the few further ones up to the maximum would only follow the noise.
        """
        some(n)
        tolerance = _TOLERANCE * (1 if self.smooth else math.exp(self.epsilon))
        steps = islice(bayes_steps(self.windows, tally, smooth=self.smooth), _MOST_STEPS)
        for before, step in pairwise(steps):
            if abs(step.log_likelihood - before.log_likelihood) < tolerance:
                break
        return DistributionEstimate(n, np.linspace(self.low, self.high, self.bins + 1), step.distribution)

    def blanket(self) -> Blanket:
        """That of the window."""
        return self.windows.blanket()

    def channel(self) -> Channel:
        """From the bins to the cells."""
        return self.windows.channel()

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The cells' numbers."""
        return reports.fields[0].astype(np.int64)


def optimal_half_width(epsilon: float) -> float:
    """The half width b of the wave, as a share of the range, that makes a report most informative.

    b = (ε·e^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε)): 1/2 for ε → 0, 0.2561 for ε = 1.
    """
    # Written so that small ε loses no digits to cancellation, and large ε none to overflow.
    if epsilon < 0.01:
        return 0.5 - epsilon / 3 + epsilon**2 / 9
    fallen = math.expm1(-epsilon)
    return (epsilon + fallen) / (2 * (math.expm1(epsilon) - epsilon))
