"""What mining under distributed noise sends follows from numbers of candidates and of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from link.costs import Costs
from link.traffic import Traffic
from mining.data.transactions import Transactions
from mining.joint.distributed.disclosure import openings
from mining.joint.distributed.mine import mine
from mining.joint.distributed.sizes import NoisySizes, noisy_traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.mining.joint.distributed.distributed_world import task_for
from tests.mining.joint.oracle import Rows
from tests.traffic import assert_planned
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)


def rows(seed: int, number: int, items: int) -> Rows:
    random = np.random.default_rng(seed)
    return [[f"item {at:03}" for at in np.flatnonzero(random.random(items) < 0.5)] for _ in range(number)]


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("public", [True, False])
def test_bytes_and_rounds(parties: int, public: bool) -> None:
    """150 items have 11,175 pairs, which are summed in slices."""
    items = 150 if public else 8
    data = {name: rows(seed, 400, items) for seed, name in enumerate(("north", "south", "east", "west")[:parties])}
    task = task_for(data, 150, max_length=2, contributions=(200, 400))
    if not public:
        task = task_for(data, 150, max_length=2, catalogue=None, contributions=(8, 40))
    classes = [0, 0]

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name:
            opening = Opening.FromString(frame.body)
            if opening.label == "noisy_sizes":
                length = int(frame.lane[-1])
                classes[length - 1] = opening.number // length

    async def role(session: Any) -> Costs:
        await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)
        return session.costs

    costs = run_parties(list(data), role, declared=openings(task, tuple(data)), observe=observe)
    traffic = Traffic(tuple(data))
    named = {} if public else dict.fromkeys(data, items * len("item 000"))
    noisy_traffic(traffic, NoisySizes((items, items * (items - 1) // 2), named, tuple(classes)))
    assert_planned(traffic, costs)
