from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy.stats import binom

from crypto.primitives.groups.point_hash import points_of
from crypto.primitives.randomness import Randomness
from crypto.protocols.transfers import oprf
from crypto.protocols.transfers.costs import oprf_rounds, oprf_traffic, programming_traffic
from crypto.protocols.transfers.extension_seeds import prepare_receiving, prepare_sending
from crypto.protocols.transfers.oprf import Parts, part_keys, receive_values, send_values
from crypto.protocols.transfers.oprf_check import columns_of, rows_from
from crypto.protocols.transfers.programmable_oprf import receive_programmed, send_programmed
from link.session import Session
from link.traffic import Traffic
from protos.v1 import oblivious_prf_pb2
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import examples
from tests.traffic import assert_planned
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

SENDER, RECEIVER = TWO = ("north", "south")


def points(*elements: int) -> Any:
    return points_of([b"%d" % element for element in elements], bytes(16))


def roles(sends: Any, receives: Any) -> dict[str, Any]:
    async def sender(session: Session) -> Any:
        seeds = await prepare_receiving(session.lane("pair"), RECEIVER, field_bits=1, symbol_bits=1)
        return await sends(session.lane("work"), seeds), session.costs

    async def receiver(session: Session) -> Any:
        seeds = await prepare_sending(session.lane("pair"), SENDER, field_bits=1, symbol_bits=1)
        return await receives(session.lane("work"), seeds), session.costs

    return {SENDER: sender, RECEIVER: receiver}


def values(theirs: Any, own: Any, capacity: int, size: int = 10) -> dict[str, Any]:
    """Roles that give the sender's values at `theirs` and the receiver's at `own`."""
    return roles(
        lambda lane, seeds: send_values(lane, RECEIVER, seeds, theirs, capacity, size),
        lambda lane, seeds: receive_values(lane, SENDER, seeds, own, capacity, size),
    )


def programmed(theirs: Any, chosen: Any, own: Any, capacities: tuple[int, int]) -> dict[str, Any]:
    return roles(
        lambda lane, seeds: send_programmed(lane, RECEIVER, seeds, theirs, chosen, capacities),
        lambda lane, seeds: receive_programmed(lane, SENDER, seeds, own, capacities, chosen.shape[1]),
    )


def run(parts: dict[str, Any], **options: Any) -> tuple[Any, Any]:
    found = run_parties(TWO, parts, **options)
    return found[SENDER][0], found[RECEIVER][0]


few = examples(1, 12, suppress_health_check=[HealthCheck.too_slow])
sets = st.sets(st.integers(0, 60), max_size=60)


# -- the function ----------------------------------------------------------------------------------------------------
@few
@given(theirs=sets, own=sets, spare=st.integers(0, 40), size=st.integers(8, 32), seed=st.integers(0, 99))
def test_values_are_equal_where_points_are(theirs, own, spare, size, seed):
    sent, received = run(values(points(*theirs), points(*own), len(own) + spare, size), seed=seed)
    assert sent.shape == (len(theirs), size)
    assert received.shape == (len(own), size)
    one, other = ({x: v.tobytes() for x, v in zip(*both, strict=True)} for both in ((theirs, sent), (own, received)))
    assert all((one[x] == other[y]) == (x == y) for x in theirs for y in own)


def test_points_in_several_parts(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    assert Parts.of(200).number == 1
    assert Parts.of(400).number > 2
    one = points(*range(300))
    sent, received = run(values(points(*range(100, 700)), one, 400))
    assert np.array_equal(sent[:200], received[100:])
    assert not {v.tobytes() for v in sent[200:]} & {v.tobytes() for v in received}


def test_a_key_evaluates_at_any_point():
    async def keys(lane: Session, seeds: Any) -> Any:
        return [key.values(points(*range(50)), 10) async for key in part_keys(lane, RECEIVER, seeds, 30)]

    receives = values(points(), points(3, 7), 30)[RECEIVER]
    ([sent], received) = run({**roles(keys, None), RECEIVER: receives})
    assert np.array_equal(sent[[3, 7]], received)
    assert len(np.unique(sent, axis=0)) == 50


def test_two_runs_share_no_value():
    runs = [run(values(points(1), points(1), 5), seed=seed) for seed in range(2)]
    assert not np.array_equal(runs[0][0], runs[1][0])


def test_streams_of_all_columns_and_functions_begin_at_counters_of_their_own(monkeypatch):
    """Else one guess of a key would be held against all columns of which a party lacks one."""
    began = list[bytes]()

    class Noted(oprf.Keystream):
        __slots__ = ()

        def go_to(self, counter):
            began.append(counter)
            super().go_to(counter)

    monkeypatch.setattr(oprf, "Keystream", Noted)
    for seed in range(2):
        run(values(points(1), points(1), 5), seed=seed)
    assert {began.count(each) for each in began} == {3}  # of T and T' at the receiver, one of these at the sender
    assert len({each[:11] for each in began}) == 2 * 512  # and what counts up reaches no other


def test_over_streams_under_mutual_tls():
    sent, received = run(values(points(*range(90)), points(*range(60)), 64), transport="grpc")
    assert np.array_equal(sent[:60], received)


def test_rows_and_columns_are_transposes():
    columns = np.frombuffer(Randomness.from_seed(3).bytes(512 * 80), np.uint8).reshape(512, -1)
    bits = np.unpackbits(columns, axis=1, bitorder="little")
    rows = rows_from(columns)
    assert np.array_equal(np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little"), bits.T)
    assert np.array_equal(columns_of(rows), columns)


# -- parameters --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("capacity", [1 << 17, (1 << 17) + 1, 10**6, 1 << 20, 1 << 24])
def test_parts_have_room_but_for_a_chance_of_2_to_minus_41(capacity):
    parts = Parts.of(capacity)
    if parts.number > 1:
        over = parts.number * binom.sf(parts.layout.capacity, capacity, 1 / parts.number)
        assert over < 2**-41
        assert parts.number * parts.layout.capacity < capacity * 1.05
    assert Parts.of(capacity).layout.capacity <= 1 << 17


# -- what a party sees -------------------------------------------------------------------------------------------------
def rows_sent(frames: list[Frame], kind: str) -> Any:
    data = [getattr(oblivious_prf_pb2, kind).FromString(f.body).data for f in frames if f.type.endswith("." + kind)]
    return np.frombuffer(b"".join(data), np.uint8)


def assert_fair(rows: Any) -> None:
    """Bits of shape (runs, rows, columns), by row, column and all: fair ones fail with a chance of 10^-8."""
    for axes in ((0, 1), (0, 2), (0, 1, 2)):
        ones = rows.sum(axis=axes, dtype=np.int64)
        number = rows.size / ones.size
        assert (np.abs(ones - number / 2) <= np.sqrt(number / 2 * np.log(2 * ones.size / 1e-9))).all()


@pytest.mark.parametrize("own", [(), tuple(range(64))])
def test_rows_are_uniform_whatever_the_receiver_has(own):
    runs = []
    for seed in range(6):
        frames: list[Frame] = []
        run(values(points(), points(*own), 64), seed=seed, observe=frames.append)
        columns = rows_sent(frames, "CodeColumns").reshape(512, -1)
        runs.append(np.unpackbits(columns, axis=1))
    assert_fair(np.array(runs))
    assert_fair(np.array(runs)[1:] ^ np.array(runs)[:-1])  # nor does a store show through what is equal in two runs


def test_frames_tell_capacities_and_nothing_else():
    shapes = []
    for theirs, own in (((), ()), (range(40), range(20, 60)), (range(64), range(64))):
        frames: list[Frame] = []
        chosen = Randomness.from_seed(1).uint64(2 * len(theirs)).reshape(-1, 2)
        run(programmed(points(*theirs), chosen, points(*own), (64, 64)), observe=frames.append)
        shapes.append(sorted((f.sender, f.lane, f.seq, f.type, f.last, len(f.body)) for f in frames))
    assert shapes[0] == shapes[1] == shapes[2]


# -- programmed values -------------------------------------------------------------------------------------------------
@few
@given(theirs=sets, own=sets, words=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_receiver_gets_what_is_programmed_at_its_points(theirs, own, words, seed):
    chosen = Randomness.from_seed(seed).uint64(words * len(theirs)).reshape(-1, words)
    _, received = run(programmed(points(*theirs), chosen, points(*own), (64, 70)), seed=seed)
    wanted = dict(zip(theirs, chosen.tolist(), strict=True))
    assert received.shape == (len(own), words)
    assert all((got == wanted.get(y)) == (y in theirs) for y, got in zip(own, received.tolist(), strict=True))


def test_programmed_values_of_several_parts(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    chosen = Randomness.from_seed(2).uint64(500).reshape(-1, 1)
    _, received = run(programmed(points(*range(500)), chosen, points(*range(200, 600)), (400, 600)))
    assert np.array_equal(received[:300], chosen[200:])


def test_the_store_of_programmed_values_is_uniform():
    """Wherever zeros are programmed, but at the receiver's points."""
    for theirs in ((1, 2), tuple(range(64))):
        runs = []
        for seed in range(6):
            frames: list[Frame] = []
            zeros = np.zeros((len(theirs), 4), np.uint64)
            run(programmed(points(*theirs), zeros, points(), (64, 64)), seed=seed, observe=frames.append)
            runs.append(np.unpackbits(rows_sent(frames, "ProgrammedRows")).reshape(-1, 256))
        assert_fair(np.array(runs))


# -- what is refused ---------------------------------------------------------------------------------------------------
def test_more_points_than_agreed_upon():
    with pytest.raises(ValueError, match="3 points are more than the 2"):
        run(values(points(), points(1, 2, 3), 2))
    with pytest.raises(ValueError, match="3 points are more than the 2"):
        run(programmed(points(1, 2, 3), np.zeros((3, 1), np.uint64), points(), (2, 2)))


def test_too_many_points_in_one_part(monkeypatch):
    monkeypatch.setattr(oprf, "MOST_KEYS", 200)
    parts = Parts.of(400)
    crowded = np.array([[parts.number * i, i] for i in range(parts.layout.capacity + 1)], np.uint64)
    with fails("E700"):
        parts.stored(crowded)


@pytest.mark.parametrize("size", [0, 33])
def test_values_of_other_sizes(size):
    with pytest.raises(ValueError, match="1 to 32 bytes"):
        run(values(points(), points(1), 5, size))


# -- costs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("capacity", [64, 3000])
def test_what_it_sends_is_what_is_planned(capacity):
    found = run_parties(TWO, values(points(1), points(1), capacity))
    traffic = Traffic(TWO)
    oprf_traffic(traffic, SENDER, RECEIVER, capacity)
    traffic.rounds += oprf_rounds(capacity)
    assert_planned(traffic, {name: costs for name, (_, costs) in found.items()}, rounds=range(2))
    found = run_parties(TWO, programmed(points(1), np.ones((1, 2), np.uint64), points(1), (capacity, 500)))
    programming_traffic(traffic, SENDER, RECEIVER, 500, 2)
    traffic.rounds += 1
    assert_planned(traffic, {name: costs for name, (_, costs) in found.items()}, rounds=range(2))
