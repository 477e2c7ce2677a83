"""What the engines of joint vertical mining are expected to send, against runs, and how they compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crypto.primitives.bit_matrix import pack_bits
from crypto.protocols.paillier import arrangement as paillier_arrangement
from crypto.protocols.paillier import rows as paillier_rows
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import EngineSpeed, Setup
from mining.joint.vertical.engines.paillier import products as paillier
from mining.joint.vertical.engines.registry import OWN
from mining.joint.vertical.parameters import Mode, VerticalMining
from mining.joint.vertical.sizes import engine_costs, pairs_of_items
from tests.mining.joint.vertical.vertical_world import dealings_of, helper_of, quick_keys
from tests.traffic import assert_planned, costs_of

pytestmark = pytest.mark.turn(3)

__all__ = ["quick_keys"]


def task_of(engine: str, parties: tuple[str, ...]) -> VerticalMining:
    return VerticalMining(1, parties, parties[:2], parties[0], engine=engine, helper=helper_of(engine, parties))


def itemsets_of(parties: tuple[str, ...], columns: int) -> list[dict[str, int]]:
    """All pairs of the first two parties' columns, and some of all parties'."""
    first, second, *_ = parties
    pairs = [{first: i, second: j} for i in range(columns) for j in range(columns)]
    return [*pairs, *(dict.fromkeys(parties, number) for number in range(columns))]


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize(
    ("engine", "n_parties", "pieces"),
    [*((engine, number, False) for engine in OWN for number in (2, 3, 4)), ("paillier", 2, True)],
)
def test_an_engine_sends_what_is_planned(
    engine: str, n_parties: int, pieces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is, and with encrypted rows in blocks and windows."""
    rows = 1100
    if pieces:
        monkeypatch.setattr(paillier, "MOST_ROWS", 1024)
        monkeypatch.setattr(paillier_arrangement, "CHUNK_BYTES", 1)
        monkeypatch.setattr(paillier_rows, "WINDOW", 1)
        monkeypatch.setattr("crypto.protocols.paillier.costs.WINDOW", 1)
    parties, columns = tuple("abcd"[:n_parties]), 3
    task, itemsets = task_of(engine, parties), itemsets_of(parties, columns)
    dealt = dealings_of(parties) if len(parties) == 2 else {}
    own = pack_bits(np.random.default_rng(1).random((columns, rows)) < 0.3)

    async def part(lane: Session, secrets: Any, pairs: Any) -> None:
        running = OWN[engine].start(Setup(lane.lane("engine"), task, secrets, pairs, dealt.get(lane.me)))
        await running.prepare(rows)
        try:
            await running.addends(lane, own, rows, itemsets)
        finally:
            running.close()

    traffic = Traffic(parties)
    OWN[engine].costs(task, parties).traffic(traffic, rows=rows, itemsets=itemsets)
    assert_planned(traffic, costs_of(parties, part), rounds=range(-999, 1))


def test_engines_are_compared() -> None:
    """Many columns of many rows, two parties: fast is who trusts a dealer; who encrypts sends least."""
    parties = ("a", "b")
    task = VerticalMining(1, parties, parties, "a")
    found = {each.engine: each for each in engine_costs(task, parties, 50_000, dict.fromkeys(parties, 50))}
    assert tuple(found) == tuple(OWN)
    assert found["replicated"].seconds < found["ot"].seconds < found["paillier"].seconds
    assert found["paillier"].bytes_sent < found["replicated"].bytes_sent < found["ot"].bytes_sent
    fast, slow = ({name: cost.over(speed, 0.02) for name, cost in found.items()} for speed in (1e9, 1e4))
    assert fast["replicated"] < fast["ot"] < fast["paillier"]
    assert slow["paillier"] < slow["replicated"] < slow["ot"]


@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_encryption_saves_nothing_where_three_parties_take_part(mode: Mode) -> None:
    parties = ("a", "b", "c")
    task = VerticalMining(1, parties, ("a", "b"), "a", mode)
    found = {each.engine: each for each in engine_costs(task, parties, 500, dict.fromkeys(parties, 3))}
    same = replace(found["paillier"], engine="ot") == found["ot"]
    assert same == (mode == "union")


def test_a_machine_twice_as_slow_takes_twice_as_long() -> None:
    parties, usual = ("a", "b", "c"), EngineSpeed()
    itemsets = pairs_of_items(parties, dict.fromkeys(parties, 5), "intersection")
    slow = EngineSpeed.by_transfer(2 * usual.transfer_s)
    for name, engine in OWN.items():
        costs = engine.costs(task_of(name, parties), parties)
        assert costs.seconds(1000, itemsets, slow) == pytest.approx(2 * costs.seconds(1000, itemsets, usual))


def test_pairs_of_items_are_those_that_span_parties() -> None:
    columns = {"a": 2, "b": 3}
    assert len(pairs_of_items(("a", "b"), columns, "intersection")) == 6
    union = pairs_of_items(("a", "b"), columns, "union")
    assert len(union) == 6 + 1 + 3
    assert all(set(itemset) == {"a", "b"} for itemset in union)
    assert {"a": 3, "b": 3} in union  # both of a's items, where b has a row
