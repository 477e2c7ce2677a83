"""Parties that deviate only where something they have seen so far has a certain value: how often that ends a job tells
nothing of what honest parties hold.

In two worlds honest parties hold other numbers of the same outcome. In either a party watches a bit of one kind of
message, run by run, and alters one of its own where the bit is 1. Honest parties end as many runs in both; if
that does not depend on the world, the test fails with a probability of 10^-6. By hand: `ended(…)` with more runs.
"""

from __future__ import annotations

import random
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import pytest

from protos.v1.link_pb2 import Frame
from protos.v1.verified_pb2 import DealtBits, MaskedAnds, MaskedOperandSums, MaskedProof, ProofDigest, ProofFingerprints
from tests.crypto.protocols.replicated.deviating_world import Ends, run_deviating
from tests.crypto.protocols.replicated.test_verified_sums import THREE, Job, assert_caught_or_right
from tests.crypto.protocols.two_party_world import ERROR
from tests.examples import ALL, in_turn

NUMBER, THRESHOLD = 9, 40
WORLDS = [Job([20] * 3, [[5] * NUMBER, [low] * NUMBER, [12 - low] * NUMBER], THRESHOLD, THREE) for low in (0, 12)]
"""North's numbers are the same, and no sum reaches the threshold."""
RUNS = 400 if ALL else 16


class Plan(NamedTuple):
    """What north watches, and what it alters where the bit that it watches is 1."""

    watched: type
    place: int
    altered: type


PLANS = [
    Plan(watched, place, altered)
    for watched, altered in [
        (DealtBits, MaskedAnds),
        (DealtBits, ProofDigest),
        (MaskedAnds, MaskedAnds),
        (MaskedAnds, MaskedProof),
        (MaskedAnds, MaskedOperandSums),
        (MaskedProof, MaskedOperandSums),
        (ProofFingerprints, ProofDigest),
    ]
    for place in (0, 13)
]


class Watching:
    """North's scheme in one run.

    Attributes:
        seen: The bit, once it has come.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, self.seen, self._done = plan, 0, False

    def observe(self, frame: Frame) -> None:
        if frame.receiver == "north" and frame.type == self._plan.watched.DESCRIPTOR.full_name:
            octets = frame.body[4:]  # behind tags and lengths
            self.seen = octets[self._plan.place // 8 % len(octets)] >> self._plan.place % 8 & 1

    def __call__(self, frame: Frame) -> list[Frame]:
        if self._done or not self.seen or frame.type != self._plan.altered.DESCRIPTOR.full_name:
            return [frame]
        self._done = True
        changed = Frame()
        changed.CopyFrom(frame)
        changed.body = frame.body[:-1] + bytes([frame.body[-1] ^ 1])
        return [changed]


def ends_of(world: Job, plan: Plan, seed: int) -> Ends:
    scheme = Watching(plan)
    return run_deviating(
        world.parties, world.role, ["north"], scheme, declared=world.declared, seed=seed, observe=scheme.observe
    )


def ended(plan: Plan, runs: int) -> tuple[int, int]:
    """How many runs of either world an honest party has ended; results are right in all others."""
    found = [0, 0]
    for place, world in enumerate(WORLDS):
        for seed in range(runs):
            ends = ends_of(world, plan, random.Random(seed * 2 + place).getrandbits(60))
            found[place] += assert_caught_or_right(ends, ["north"], world.expected)
    return found[0], found[1]


@pytest.mark.costly
@pytest.mark.parametrize(
    "plan", in_turn(PLANS, 14), ids=lambda plan: f"{plan[0].__name__}-{plan[1]}-{plan[2].__name__}"
)
def test_who_ends_a_job_by_what_it_has_seen_learns_nothing_of_others_numbers(plan: Plan) -> None:
    assert WORLDS[0].expected == WORLDS[1].expected
    one, other = ended(plan, RUNS)
    assert one + other > 0
    bound = NormalDist().inv_cdf(1 - ERROR / 2) * sqrt(RUNS / 2)  # at the rate that spreads most
    assert abs(one - other) <= bound
