"""1BitMean with α-point rounding: the mean of numbers from kept bits.

1BitMean itself is Duchi's mechanism. A fresh bit in every report would average out, and a kept bit for every number
would reveal whenever it changes. So a number is first rounded to one of a few points, by an offset α that is the user's
for ever: small changes mostly do not move it, and over the draw of α the rounded number is right on average.
Source: Ding, Kulkarni and Yekhanin, "Collecting Telemetry Data Privately", NIPS 2017, sections 2 (1BitMean) and 4
(α-point rounding).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.numeric.duchi import Duchi
from ldp.numeric.interval import randomly_rounded
from ldp.numeric.mean import MeanEstimate
from ldp.reports import Field
from link.errors import ConfigurationError

_OFFSETS: Final = 1 << 32
_MOST_INTERVALS: Final = 1 << 16


class OneBitMean(MemoisedMechanism[MeanEstimate], Duchi):
    """A bit that is one with probability 1/(e^ε + 1) for the least number, evenly up to e^ε/(e^ε + 1) for the largest.

    Args:
        epsilon: ε of one report, and of all reports whose number is rounded to the same point.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
        intervals: Into how many the points cut the range. With 1, numbers are rounded to an end, and a user spends ε
            twice at most. With more, a user's bit follows smaller changes, and ε is spent more often; the variance of
            one collection is the same.

    Raises:
        ConfigurationError: A parameter is out of its range.
    """

    name: ClassVar[str] = "1bit-mean"

    def __init__(
        self, epsilon: float, low: float = -1.0, high: float = 1.0, clip: bool = False, intervals: int = 1
    ) -> None:
        super().__init__(epsilon, low, high, clip)
        if not 1 <= intervals <= _MOST_INTERVALS:
            raise ConfigurationError(f"numbers are rounded within 1 to {_MOST_INTERVALS:,} intervals, not {intervals}")
        self.intervals = intervals

    @property
    def exact_permanent_epsilon(self) -> float:
        """That of one report, since bits are sent as they were kept."""
        return self.exact_epsilon

    @property
    def trait_layout(self) -> Field:
        """The offset α, in steps of 2^-32 of an interval."""
        return Field("uint32")

    @property
    def answer_layout(self) -> Field:
        """A bit."""
        return self.layout[0]

    def traits(self, n: int, rng: Randomness) -> NDArray[Any]:
        """Uniform offsets."""
        return rng.integers(_OFFSETS, n).astype(np.uint32)

    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of the points to which values are rounded: up where what exceeds a point is above α."""
        scaled = self.interval.shares(values) * self.intervals
        point = np.floor(scaled)
        return point.astype(np.int64) + (traits < (scaled - point) * _OFFSETS)

    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[Any]:  # noqa: ARG002
        """Duchi's mechanism for the points."""
        return self._perturb_points(randomly_rounded(keys / self.intervals, self.steps, rng), rng)[0]

    def respond(
        self,
        answers: NDArray[Any],
        traits: NDArray[Any],  # noqa: ARG002
        rng: Randomness,  # noqa: ARG002 (nothing is perturbed a second time)
    ) -> tuple[NDArray[Any], ...]:
        """The kept bits."""
        return (answers,)
