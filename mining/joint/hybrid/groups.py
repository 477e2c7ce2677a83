"""Which of a party's records answer in which phase.

The records are put into secret random order and cut at the phases' shares, from a common random place on: every record
is in each phase with the probability of the phase's share, and whatever a party draws, its groups have the expected
size to within one. So numbers of records show beforehand behind how many reports one hides.

Source: Madow, "On the Theory of Systematic Sampling, II", Annals of Mathematical Statistics 20(3), 1949.
"""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.sets.plan import MiningPlan
from link.randomness import RandomStream
from mining.joint.hybrid.budget import least_group

Rows = NDArray[np.int64]

_PLACES: Final = 1 << 32


def drawn(records: int, plan: MiningPlan, random: RandomStream) -> list[Rows]:
    """For each phase the records that answer in it, whatever they hold.

    Args:
        records: How many there are.
        plan: Whose phases these are; where users are not divided, all answer in all.
        random: The source of randomness.
    """
    if not plan.divides_users:
        return [np.arange(records)] * len(plan.shares)
    order, place = random.permutation(records), random.below(_PLACES)
    return [np.sort(order[start:stop]) for start, stop in pairwise(_cuts(records, plan, place))]


def drawn_sizes(records: int, plan: MiningPlan, random: RandomStream) -> list[int]:
    """How many of a party's records answer in each phase of a plan that divides users, as `drawn` draws them."""
    return [stop - start for start, stop in pairwise(_cuts(records, plan, random.below(_PLACES)))]


def _cuts(records: int, plan: MiningPlan, place: int) -> list[int]:
    """Where the phases begin, and where the last one ends; `place` is below `_PLACES`."""
    return [0, *(math.floor(share * records * _PLACES + place) // _PLACES for share in accumulate(plan.shares))]


def check_sizes(sizes: list[int], plan: MiningPlan) -> int:
    """How many records a party has, from the sizes of its groups.

    Raises:
        ValueError: No party that follows the protocol draws such groups.
    """
    if len(sizes) != len(plan.shares):
        raise ValueError(f"there are {len(plan.shares)} phases, and not {len(sizes)}")
    records = sum(sizes) if plan.divides_users else sizes[0]
    for size, share in zip(sizes, plan.shares, strict=True):
        if not 0 <= size - least_group(records, share) <= (1 if plan.divides_users else 0):
            raise ValueError("the groups of the phases are not of the phases' shares")
    return records
