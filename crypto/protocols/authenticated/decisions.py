"""What two decide, of which one may deviate, and how many ANDs that takes."""

from __future__ import annotations

from functools import cache

import numpy as np

from crypto.primitives.shares.authenticated import AuthenticatedBits
from crypto.primitives.shares.known_bits import KnownBits
from crypto.protocols.authenticated.capped import Capped
from crypto.protocols.authenticated.thresholds import Circuits, Shares, Threshold, padded
from crypto.protocols.replicated.circuits import planes_by_step, side_by_side, sums


def sum_width(parties: int, width: int) -> int:
    """Bits that hold the sum of a number of each party, whatever they deal."""
    return width + (parties - 1).bit_length()


def total(numbers: Shares) -> Circuits:
    """The sums of all parties' numbers, in few steps."""
    width = sum_width(len(numbers), numbers[0].width)
    return [sums([padded(each, width) for each in numbers], few=True)]


def decision_on(parties: int, threshold: int, width: int) -> Threshold:
    """How so many parties' sums are held against a threshold; arguments as of `Threshold`."""
    return Capped(threshold, width) if parties == 2 else Threshold(threshold, width)


@cache
def decision_planes(parties: int, decision: Threshold) -> tuple[int, ...]:
    """Planes of ANDs of a decision, step by step, on so many parties' numbers."""
    summands = []
    for first in (True, False):
        shape = decision.known_planes(first), 0
        known = KnownBits(np.zeros(shape, np.uint8), np.zeros(shape, np.uint64), np.uint64(0))
        summands.append(decision.summand(known, first).shared(np.uint64(0), "0", ("0", "1")))
    numbers = [_nothing(decision.width)] * (parties - 2)
    circuits = decision.circuits(summands, numbers, numbers)
    return tuple(planes_by_step(side_by_side(circuits), summands[0]))


@cache
def total_planes(parties: int, width: int) -> tuple[int, ...]:
    """Likewise, of `total`."""
    number = _nothing(width)
    return tuple(planes_by_step(side_by_side(total([number] * parties)), number))


def _nothing(width: int) -> AuthenticatedBits:
    """A share of no number of so many bits, of which circuits can be counted."""
    shape = width, 0
    return AuthenticatedBits(np.zeros(shape, np.uint8), np.zeros(shape, np.uint64), np.uint64(0), "0", ("0", "1"))
