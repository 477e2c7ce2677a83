"""Mining under distributed noise over rows in blocks: the same sums, and the same messages, as in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from link.session import Session
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.distributed.classes import ItemClasses, ItemsetClasses
from mining.joint.distributed.disclosure import openings
from mining.joint.distributed.mine import mine
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.distributed.truncation import Excess, truncated_item_counts
from mining.joint.estimated import EstimatedOutcome, pack_estimates
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.mining.joint.distributed.distributed_world import task_for
from tests.mining.partitioned.world import PARTITIONS, evenly, partitioned, ragged
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

ITEMS = tuple(sorted([*"abcdef", "bread, white", "ünï"]))
given_rows = st.lists(st.lists(st.sampled_from(ITEMS), max_size=8), max_size=12)


@given(given_rows, st.integers(1, 8), st.integers(1, 3), st.data())
@examples(13, 100)
def test_truncated_sums_are_those_of_all_rows(
    rows: list[list[str]], most: int, width: int, draw: st.DataObject
) -> None:
    data = Transactions.from_rows(rows).onto(ITEMS)
    blocks = partitioned(data, draw.draw(ragged(data.n_rows)))
    all_sets = list(combinations(range(len(ITEMS)), width))
    sets = all_sets if width == 2 else sorted(draw.draw(st.sets(st.sampled_from(all_sets), min_size=1)))
    order = np.array(draw.draw(st.permutations(range(len(sets)))), np.int64)
    candidates = np.array(sets, np.int32)
    kernels: list[Any] = [
        Excess(candidates, order, most),
        ItemClasses((1, most + 1)),
        ItemsetClasses((0, most), candidates, order, draw.draw(st.integers(0, len(sets)))),
    ]
    for kernel in kernels:
        assert blocks.total(kernel).tolist() == data.total(kernel).tolist()
    assert truncated_item_counts(blocks, most).tolist() == truncated_item_counts(data, most).tolist()


def run(
    data: Mapping[str, Rows], task: DistributedMining, seed: int
) -> tuple[dict[str, EstimatedOutcome], Counter[tuple[str, bytes]]]:
    """What the parties find, and the messages that they send; the noise is the same for the same seed."""
    sent: Counter[tuple[str, bytes]] = Counter()

    def observe(frame: Frame) -> None:
        sent[frame.lane, frame.body] += 1

    async def role(session: Session) -> EstimatedOutcome:
        return await mine(session.lane("task"), data[session.me], task)

    parties = list(data)
    return run_parties(parties, role, declared=openings(task, tuple(parties)), seed=seed, observe=observe), sent


def assert_alike(data: Mapping[str, Rows], blocks: Mapping[str, Rows], task: DistributedMining, seed: int) -> None:
    expected, sent = run(data, task, seed)
    found, sent_over_blocks = run(blocks, task, seed)
    assert sent_over_blocks == sent
    for party, result in expected.items():
        assert result.estimated is not None
        other = found[party].estimated
        assert other is not None
        assert pack_estimates(other) == pack_estimates(result.estimated)


@given(st.lists(given_rows, min_size=2, max_size=3).filter(any), st.integers(0, 1 << 16), st.data())
@examples(1, 10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_whole_jobs_are_alike(parties: list[list[list[str]]], seed: int, draw: st.DataObject) -> None:
    given_data = {f"p{place}": rows for place, rows in enumerate(parties)}
    task = task_for(
        given_data,
        1,
        contributions=draw.draw(st.none() | st.tuples(st.integers(1, 3), st.integers(1, 5))),
        max_length=3,
        max_candidates=100_000,
    )
    data = {party: Transactions.from_rows(rows) for party, rows in given_data.items()}
    blocks = {party: partitioned(own, draw.draw(ragged(own.n_rows))) for party, own in data.items()}
    assert_alike(data, blocks, task, seed)


@pytest.mark.parametrize("parts", PARTITIONS)
@pytest.mark.parametrize("named", [False, True], ids=["catalogue", "named"])
def test_however_many_partitions(parts: int, named: bool) -> None:
    """One party holds its rows in memory; it cannot be told from the others."""
    random = np.random.default_rng(7)
    chances = np.linspace(0.9, 0.1, len(ITEMS))
    given_data = {
        f"p{place}": [
            [item for item, held in zip(ITEMS, row, strict=True) if held]
            for row in random.random((400, len(ITEMS))) < chances
        ]
        for place in range(3)
    }
    task = task_for(given_data, 300, contributions=None, **({"catalogue": None} if named else {}))
    data: dict[str, Rows] = {party: Transactions.from_rows(rows) for party, rows in given_data.items()}
    blocks: dict[str, Rows] = {
        party: partitioned(own, evenly(own.n_rows, parts))
        for party, own in data.items()
        if isinstance(own, Transactions)
    }
    blocks["p2"] = data["p2"]
    assert_alike(data, blocks, task, 3)
