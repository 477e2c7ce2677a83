"""Joint mining over rows in blocks: the same results and the same messages as in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from link.session import Session
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.joint.disclosure import openings
from mining.joint.horizontal.hidden_disclosure import hidden_openings
from mining.joint.horizontal.mine import mine
from mining.joint.parameters import HorizontalMining, JointItemsets, RuleParameters
from mining.joint.shared_rules import rules_openings
from protos.v1.link_pb2 import Frame
from tests.examples import examples, slowly
from tests.mining.partitioned.world import PARTITIONS, evenly, partitioned, ragged
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

ITEMS = ["a", "b", "c", "bread, white", "ünï", "ミルク", "d"]
rows = st.lists(st.lists(st.sampled_from(ITEMS), max_size=6), max_size=8)
datasets = st.lists(rows, min_size=2, max_size=4).filter(any)


def task_for(parties: tuple[str, ...], min_support: int | Decimal, **parameters: object) -> HorizontalMining:
    task = HorizontalMining(min_support, learners=parties, merger=parties[0], compute=parties[:2])  # type: ignore[arg-type]
    return replace(task, **parameters)  # type: ignore[arg-type]


def run(
    data: Mapping[str, Rows], task: HorizontalMining
) -> tuple[dict[str, JointItemsets], Counter[tuple[str, bytes]]]:
    """What the parties find, and the messages that they send."""
    sent: Counter[tuple[str, bytes]] = Counter()

    def observe(frame: Frame) -> None:
        sent[frame.lane, frame.body] += 1

    async def role(session: Session) -> JointItemsets:
        return await mine(session.lane("task"), data[session.me], task)

    parties = tuple(data)
    declared = [*openings(task, parties), *hidden_openings(task, parties), *rules_openings(task, parties)]
    return run_parties(list(data), role, declared=declared, observe=observe), sent


def assert_alike(data: Mapping[str, Transactions], blocks: Mapping[str, Rows], task: HorizontalMining) -> None:
    expected, sent = run(data, task)
    found, sent_over_blocks = run(blocks, task)
    assert sent_over_blocks == sent
    for party, result in expected.items():
        other = found[party]
        assert (other.n_rows, other.strategy) == (result.n_rows, result.strategy)
        assert (other.itemsets is None) == (result.itemsets is None)
        if result.itemsets is not None and other.itemsets is not None:
            assert list(other.itemsets.rows()) == list(result.itemsets.rows())
        assert (other.rules is None) == (result.rules is None)
        if result.rules is not None and other.rules is not None:
            assert other.rules.to_arrow().equals(result.rules.to_arrow())


@given(datasets, st.data())
@examples(1, 7, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_whole_jobs_are_alike(given_rows: list[list[list[str]]], draw: st.DataObject) -> None:
    data = {f"p{place}": Transactions.from_rows(party) for place, party in enumerate(given_rows)}
    parties = tuple(data)
    n_rows = sum(party.n_rows for party in data.values())
    disclose = draw.draw(st.sampled_from(["candidates", "supports", "frequent"]))
    universe = ["frequent-items", "all-items"] + ([] if disclose == "candidates" else ["hidden"])
    task = task_for(
        parties,
        draw.draw(st.integers(1, n_rows)),
        strategy=draw.draw(st.sampled_from(["level-wise", "one-shot"])),
        disclose=disclose,
        universe=draw.draw(st.sampled_from(universe)),
        thin=draw.draw(st.booleans()),
        union=draw.draw(st.sampled_from(["maximal", "all"])),
        max_length=draw.draw(st.none() | st.integers(1, 3)),
        rules=RuleParameters(Decimal("0.5"), "any") if disclose == "frequent" else None,
    )
    blocks = {party: partitioned(own, draw.draw(ragged(own.n_rows))) for party, own in data.items()}
    assert_alike(data, blocks, task)


@pytest.mark.parametrize(
    ("parts", "universe", "strategy"),
    slowly(product(PARTITIONS, ["frequent-items", "hidden"], ["level-wise", "one-shot"]), now=[0, 5, 6, 11]),
)
def test_however_many_partitions(parts: int, universe: str, strategy: str) -> None:
    """One party holds its rows in memory; it cannot be told from the others."""
    data = {
        f"p{place}": Transactions.from_rows(
            [[item for position, item in enumerate(ITEMS) if (row * (place + 3)) >> position & 1] for row in range(40)]
        )
        for place in range(3)
    }
    task = task_for(
        tuple(data),
        14,
        strategy=strategy,
        disclose="frequent",
        universe=universe,
        rules=RuleParameters(Decimal("0.4"), "any"),
    )
    blocks: dict[str, Rows] = {party: partitioned(own, evenly(own.n_rows, parts)) for party, own in data.items()}
    blocks["p2"] = data["p2"]
    assert_alike(data, blocks, task)
