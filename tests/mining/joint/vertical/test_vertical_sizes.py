"""What the engines of joint vertical mining are reckoned to send, against real runs: byte for byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.primitives.bit_matrix import pack_bits
from crypto.protocols.paillier import arrangement as paillier_arrangement
from crypto.protocols.paillier import rows as paillier_rows
from crypto.protocols.sums.pairwise import agree
from link.core import FRAME_OVERHEAD_BYTES
from link.session import Session
from link.traffic import Traffic
from mining.joint.vertical.engines import paillier
from mining.joint.vertical.engines.choice import make_engine
from mining.joint.vertical.mine import pair_up
from mining.joint.vertical.parameters import ChosenEngine, Mode, VerticalMining
from mining.joint.vertical.sizes import (
    ENGINES,
    EngineSpeed,
    addends_seconds,
    addends_traffic,
    engine_costs,
    pairs_of_items,
)
from protos.v1.link_pb2 import Frame
from tests.examples import examples
from tests.mining.joint.vertical.vertical_world import dealings_of, helper_of, quick_keys
from tests.world import run_parties

__all__ = ["quick_keys"]


def task_of(engine: str, parties: tuple[str, ...]) -> VerticalMining:
    return VerticalMining(1, parties, parties[:2], parties[0], engine=engine, helper=helper_of(engine, parties))


def size(frame: Frame) -> int:
    names = sum(map(len, (frame.sender, frame.receiver, frame.lane, frame.type)))
    return len(frame.body) + len(frame.session) + names + FRAME_OVERHEAD_BYTES


def compare(
    engine: ChosenEngine, parties: tuple[str, ...], rows: int, itemsets: list[dict[str, int]], columns: int
) -> None:
    task, frames = task_of(engine, parties), list[Frame]()
    dealt = dealings_of(parties) if len(parties) == 2 else {}
    bits = {party: np.random.default_rng(number).random((columns, rows)) < 0.3 for number, party in enumerate(parties)}

    async def role(session: Session) -> tuple[np.ndarray, int]:
        me = session.me
        engine = make_engine(session.lane("engine"), task, await agree(session), pair_up(session), dealt.get(me))
        await engine.prepare(rows)
        lane = session.lane("work")
        before = lane.costs.rounds
        try:
            addends = await engine.addends(lane, pack_bits(bits[me]), rows, itemsets)
        finally:
            engine.close()
        return addends, lane.costs.rounds - before

    def observe(frame: Frame) -> None:
        if frame.lane.startswith("/work"):
            frames.append(frame)

    out = run_parties(parties, role, observe=observe, deadline_s=240)
    expected = [
        int(np.logical_and.reduce([bits[party][column] for party, column in itemset.items()]).sum())
        for itemset in itemsets
    ]
    assert sum(addends for addends, _ in out.values()).tolist() == expected
    traffic = Traffic(parties)
    addends_traffic(traffic, "/work", task, engine, rows=rows, itemsets=itemsets)
    for party in parties:
        assert traffic.bytes_sent(party) == sum(size(frame) for frame in frames if frame.sender == party)
        assert traffic.bytes_received(party) == sum(size(frame) for frame in frames if frame.receiver == party)
    assert traffic.rounds >= max(rounds for _, rounds in out.values())


@pytest.mark.usefixtures("quick_keys")
@pytest.mark.parametrize("engine", ENGINES)
@given(st.data(), st.integers(2, 4), st.sampled_from([1, 8, 100, 515]))
@examples(3, 6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_are_those_of_a_run(engine: ChosenEngine, data: st.DataObject, n_parties: int, rows: int) -> None:
    parties, columns = tuple("abcd"[:n_parties]), 4
    itemset = st.lists(st.sampled_from(parties), min_size=2, unique=True).flatmap(
        lambda members: st.fixed_dictionaries({party: st.integers(0, columns - 1) for party in sorted(members)})
    )
    compare(engine, parties, rows, data.draw(st.lists(itemset, min_size=1, max_size=12)), columns)


@pytest.mark.usefixtures("quick_keys")
def test_rows_in_blocks_and_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "MOST_ROWS", 1024)
    monkeypatch.setattr(paillier_arrangement, "CHUNK_BYTES", 1)
    monkeypatch.setattr(paillier_rows, "WINDOW", 1)
    monkeypatch.setattr("crypto.protocols.paillier.costs.WINDOW", 1)
    compare("paillier", ("a", "b"), 1100, [{"a": column, "b": 0} for column in range(20)], 20)


def test_engines_are_compared() -> None:
    """Many columns of many rows, two parties: fast is who trusts a dealer; who encrypts sends least."""
    parties = ("a", "b")
    task = VerticalMining(1, parties, parties, "a")
    found = {each.engine: each for each in engine_costs(task, parties, 50_000, dict.fromkeys(parties, 50))}
    assert tuple(found) == ENGINES
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
    for engine in ENGINES:
        assert addends_seconds(engine, parties, 1000, itemsets, slow) == pytest.approx(
            2 * addends_seconds(engine, parties, 1000, itemsets, usual)
        )


def test_pairs_of_items_are_those_that_span_parties() -> None:
    columns = {"a": 2, "b": 3}
    assert len(pairs_of_items(("a", "b"), columns, "intersection")) == 6
    union = pairs_of_items(("a", "b"), columns, "union")
    assert len(union) == 6 + 1 + 3
    assert all(set(itemset) == {"a", "b"} for itemset in union)
    assert {"a": 3, "b": 3} in union  # both of a's items, where b has a row
