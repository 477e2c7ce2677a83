"""What mining under distributed noise sends is worked out to the byte from numbers of candidates and of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from link.traffic import Traffic
from mining.data.transactions import Transactions
from mining.joint.distributed.disclosure import openings
from mining.joint.distributed.mine import mine
from mining.joint.distributed.sizes import NamedItems, NoisySizes, noisy_traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.mining.joint.distributed.distributed_world import task_for
from tests.mining.joint.oracle import Rows
from tests.world import run_parties


def rows(seed: int, number: int, items: int) -> Rows:
    random = np.random.default_rng(seed)
    return [[f"item {at:03}" for at in np.flatnonzero(random.random(items) < 0.5)] for _ in range(number)]


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize(("items", "public"), [(8, True), (8, False), (150, True)])
def test_bytes_and_rounds(parties: int, items: int, public: bool) -> None:
    """150 items have 11,175 pairs, which are summed in slices."""
    data = {name: rows(seed, 400, items) for seed, name in enumerate(("north", "south", "east", "west")[:parties])}
    task = task_for(data, 150, max_length=2 if items > 8 else 3, contributions=(200, 400, 200))
    if not public:
        task = task_for(data, 150, max_length=3, catalogue=None, contributions=(8, 40, 40))
    frames: list[Frame] = []

    async def role(session: Any) -> tuple[int, int]:
        before = session.costs.bytes_sent
        await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)
        return session.costs.bytes_sent - before, session.costs.rounds

    costs = run_parties(list(data), role, declared=openings(task, tuple(data)), observe=frames.append)
    counted: dict[str, int] = {}
    classes = [0, 0, 0]
    named: dict[str, NamedItems] = {}
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            if message.label == "items":
                named[frame.sender] = NamedItems(message.number, len(message.values))
            elif message.label == "noisy_sizes":
                length = int(frame.lane[-1])
                classes[length - 1] = message.number // (1 if length == 1 else 2)
            elif message.label == "noisy_supports":
                counted[frame.lane] = message.number
    candidates = tuple(counted[lane] for lane in sorted(counted)) if items == 8 else (150, 150 * 149 // 2)
    traffic = Traffic(tuple(data))
    noisy_traffic(traffic, "/task", NoisySizes(candidates, named, tuple(classes)))
    assert {party: (traffic.bytes_sent(party), traffic.rounds) for party in data} == costs
