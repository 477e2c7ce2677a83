"""What a search for heavy hitters ends with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeavyHitter:
    """A value that was found.

    Attributes:
        value: A text or a whole number, as it was encoded.
        frequency: The unbiased estimate of its share of the users; that a value was found for its high estimate
            makes the estimates of the rarest ones too high.
        deviation: The standard deviation of that estimate, with PEM raised so that the interval of ±1.96 of it covers,
            with 95 %, what was selected for its high estimate.
    """

    value: str | int
    frequency: float
    deviation: float
