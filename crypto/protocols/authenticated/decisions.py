"""The circuits of decisions between two, and how many ANDs they take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from crypto.primitives.shares.authenticated import AuthenticatedBits
from crypto.protocols.replicated.circuits import Circuit, above, planes_by_step, reaching_sums, side_by_side, sums

Shares = Sequence[AuthenticatedBits]
Circuits = list[Circuit[AuthenticatedBits, Any]]


def sum_width(parties: int, width: int) -> int:
    """Bits that hold the sum of a number of each party, whatever they deal."""
    return width + (parties - 1).bit_length()


def total(numbers: Shares, _: Shares) -> Circuits:
    """The sums of all parties' numbers."""
    first = numbers[0]
    padding = [first.constant(0)] * (sum_width(len(numbers), first.width) - first.width)
    return [sums([AuthenticatedBits.stacked([each, *padding]) for each in numbers])]


def decision(numbers: Shares, limits: Shares, threshold: int) -> Circuits:
    """The sums, whether they reach a threshold, and which numbers are above their limits; with the fewest ANDs."""
    return [reaching_sums(numbers, threshold, few=False), above(numbers, limits)]


@cache
def decision_planes(parties: int, width: int) -> tuple[int, ...]:
    """Planes of ANDs of `decision`, step by step, of so many parties' numbers of so many bits."""
    numbers = _nothing(parties, width)
    return tuple(planes_by_step(side_by_side(decision(numbers, numbers, 0)), numbers[0]))


@cache
def total_planes(parties: int, width: int) -> tuple[int, ...]:
    """Likewise, of `total`."""
    numbers = _nothing(parties, width)
    return tuple(planes_by_step(side_by_side(total(numbers, [])), numbers[0]))


def _nothing(parties: int, width: int) -> Shares:
    """Shares of no number of each party, of which circuits can be counted."""
    shape = width, 0
    none = AuthenticatedBits(np.zeros(shape, np.uint8), np.zeros(shape, np.uint64), np.uint64(0), "0", ("0", "1"))
    return [none] * parties
