from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.sums import secure_sum as protocol
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import secure_sum, shared_sum, slices
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.secure_sum_pb2 import MaskedValues
from tests.crypto.protocols.sums.summing import (
    FORMS,
    THREE,
    Form,
    Words,
    added,
    after_agreement,
    draw,
    form,
    names,
    run,
    sharing,
    summing,
)

pytestmark = pytest.mark.turn(5)

DIRECT = protocol.DIRECT_BYTES // 8  # the longest vector that is opened whole to every receiver
WORD_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
WORDS = st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1), st.integers(0, 2**64 - 1))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(2, 7), m=st.sampled_from([0, 1, 2, 5, 40]), seed=st.integers(0, 2**32))
def test_receivers_learn_the_sum_and_nobody_else_does(data: st.DataObject, n: int, m: int, seed: int) -> None:
    vectors = {name: data.draw(arrays(np.uint64, m, elements=WORDS)) for name in names(n)}
    to = data.draw(st.none() | st.lists(st.sampled_from(names(n)), min_size=1, unique=True).map(tuple))
    with form(data.draw(st.sampled_from(FORMS))):
        totals = run(summing(vectors, to), n, seed=seed)
    for name, total in totals.items():
        if to is None or name in to:
            assert total.dtype == np.uint64
            assert total.tolist() == added(vectors)
        else:
            assert total is None


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=st.integers(2, 7), m=st.sampled_from([0, 1, 2, 40]), seed=st.integers(0, 2**32))
def test_shares_of_the_holders_add_up_to_the_sum(data: st.DataObject, n: int, m: int, seed: int) -> None:
    vectors = {name: data.draw(arrays(np.uint64, m, elements=WORDS)) for name in names(n)}
    holders = data.draw(st.permutations(names(n)).map(lambda order: (order[0], order[1])))
    shares = run(sharing(vectors, holders), n, seed=seed)
    assert {name for name, held in shares.items() if held is not None} == set(holders)
    assert reconstruct([shares[name] for name in holders]).tolist() == added(vectors)


@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("m", [DIRECT, DIRECT + 1, 20_011, 200_003])
def test_long_vectors(n: int, m: int) -> None:
    vectors = draw(n, m)
    expected = np.add.reduce(list(vectors.values()))
    assert all(np.array_equal(total, expected) for total in run(summing(vectors), n).values())
    shares = run(sharing(vectors, ("p1", "p0")), n)
    assert np.array_equal(reconstruct([shares["p0"], shares["p1"]]), expected)


def test_one_party_may_hold_nearly_everything() -> None:
    vectors = {"p0": np.full(9, 2**64 - 1, np.uint64), "p1": np.zeros(9, np.uint64), "p2": np.ones(9, np.uint64)}
    assert [total.tolist() for total in run(summing(vectors)).values()] == [[0] * 9] * 3


@pytest.mark.parametrize("name", FORMS)
def test_over_grpc_streams(name: Form) -> None:
    vectors = draw(3, 150_000)  # several chunks per slice
    with form(name):
        totals = run(summing(vectors), transport="grpc")
    assert all(np.array_equal(total, np.add.reduce(list(vectors.values()))) for total in totals.values())


def test_shares_over_grpc_streams() -> None:
    vectors = draw(4, 150_000)
    shares = run(sharing(vectors, ("p2", "p1")), 4, transport="grpc")
    assert np.array_equal(reconstruct([shares["p2"], shares["p1"]]), np.add.reduce(list(vectors.values())))


@pytest.mark.parametrize("name", FORMS)
def test_sums_follow_one_another_on_one_lane_and_run_beside_one_another_on_several(name: Form) -> None:
    vectors = draw(3, 10)
    expected = added(vectors)

    async def role(session: Session) -> list[list[int]]:
        secrets = await agree(session)
        mine = vectors[session.me]
        first = await secure_sum(session, secrets, mine, label="sum")
        again = await secure_sum(session, secrets, mine, label="sum")
        beside = await asyncio.gather(*(secure_sum(session.lane(f"{k}"), secrets, mine, label="sum") for k in range(3)))
        return [total.tolist() for total in (first, again, *beside)]

    with form(name):
        assert run(role) == dict.fromkeys(THREE, [expected] * 5)


def test_the_input_is_left_as_it_is() -> None:
    vectors = draw(3, 10)
    kept = {name: vector.copy() for name, vector in vectors.items()}
    with form("sliced"):
        run(summing(vectors))
    assert all(np.array_equal(vectors[name], kept[name]) for name in THREE)


@given(m=st.integers(0, 10**6), count=st.integers(1, 9))
def test_slices_cover_the_vector_evenly(m: int, count: int) -> None:
    parts = slices(m, count)
    lengths = [part.stop - part.start for part in parts]
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert sum(lengths) == m
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("values", [np.zeros(3, np.int64), np.zeros((3, 1), np.uint64), np.zeros(3)])
def test_only_vectors_of_unsigned_words_are_summed(values: Words) -> None:
    vectors = dict.fromkeys(THREE, values)
    with pytest.raises(ValueError, match="unsigned"):
        run(summing(vectors))
    with pytest.raises(ValueError, match="unsigned"):
        run(sharing(vectors, ("p0", "p1")))


@pytest.mark.parametrize("word", WORD_TYPES)
@pytest.mark.parametrize("m", [0, 1, 7, 1001, 200_003])
def test_short_words_wrap_around_at_their_own_size(word: type[np.unsignedinteger[Any]], m: int) -> None:
    top = int(np.iinfo(word).max)
    vectors = {name: np.random.default_rng(i).integers(0, top, m, word, endpoint=True) for i, name in enumerate(THREE)}
    expected = np.add.reduce(list(vectors.values()), dtype=word)
    frames: list[Frame] = []
    for total in run(summing(vectors), frames=frames).values():
        assert total.dtype == word
        assert np.array_equal(total, expected)
    payload = sum(len(Opening.FromString(f.body).values) for f in after_agreement(frames))
    size = m * np.dtype(word).itemsize
    assert payload == (6 * size if size <= protocol.DIRECT_BYTES else 4 * size)


@pytest.mark.parametrize("word", WORD_TYPES)
def test_shares_keep_the_word_and_take_as_few_bytes(word: type[np.unsignedinteger[Any]]) -> None:
    top = int(np.iinfo(word).max)
    vectors = {
        name: np.random.default_rng(i).integers(0, top, 1001, word, endpoint=True) for i, name in enumerate(names(4))
    }
    frames: list[Frame] = []
    shares = run(sharing(vectors, ("p1", "p3")), 4, frames=frames)
    assert {shares[name].word for name in ("p1", "p3")} == {word}
    total = reconstruct([shares["p1"], shares["p3"]])
    assert np.array_equal(total, np.add.reduce(list(vectors.values()), dtype=word))
    sent = [len(MaskedValues.FromString(frame.body).data) for frame in after_agreement(frames)]
    assert sent == [1001 * np.dtype(word).itemsize] * 2


@given(st.integers(0, 2**64 - 1))
def test_a_word_holds_its_bound_and_no_shorter_one_does(bound: int) -> None:
    word = protocol.word_for(bound)
    assert word.kind == "u"
    assert np.iinfo(word).max >= bound
    assert word.itemsize == 1 or bound >= 2 ** (4 * word.itemsize)


@pytest.mark.parametrize("to", [(), ("p0", "nobody")])
def test_receivers_are_parties(to: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="receivers"):
        run(summing(draw(3, 1), to))


@pytest.mark.parametrize("holders", [("p0", "p0"), ("p0", "nobody"), ("p0", "p1", "p2")])
def test_holders_are_two_parties(holders: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="holders"):
        run(sharing(draw(3, 1), holders))


# Bytes of all frames of all parties after the agreement, with names of two letters and the label 'sum'; rounds.
COSTS = {
    (2, 0): (164, 1),
    (2, 1): (188, 1),
    (3, 0): (492, 1),
    (3, 1): (564, 1),
    (3, 1_000): (48_534, 1),
    (7, 1_000): (339_738, 1),
    (3, 8_192): (393_762, 1),
    (3, 8_193): (263_280, 2),
    (7, 8_193): (794_088, 2),
    (2, 200_000): (3_200_368, 1),
    (3, 500_000): (16_002_220, 2),
}


@pytest.mark.parametrize(("n", "m"), COSTS)
def test_bytes_and_rounds_of_an_open_sum(n: int, m: int) -> None:
    vectors = draw(n, m)

    async def role(session: Session) -> int:
        secrets = await agree(session)
        before = session.costs.rounds
        await secure_sum(session, secrets, vectors[session.me], label="sum")
        return session.costs.rounds - before

    frames: list[Frame] = []
    rounds = run(role, n, frames=frames)
    size, expected = COSTS[n, m]
    assert sum(f.ByteSize() for f in after_agreement(frames)) == size
    assert rounds == dict.fromkeys(names(n), expected)


@pytest.mark.parametrize(("n", "k", "m"), [(3, 3, 20_000), (5, 5, 20_000), (5, 2, 20_000), (5, 1, 20_000), (5, 3, 100)])
def test_payload_follows_the_formula(n: int, k: int, m: int) -> None:
    frames: list[Frame] = []
    run(summing(draw(n, m), names(k)), n, frames=frames)
    payload = sum(len(Opening.FromString(f.body).values) for f in after_agreement(frames))
    if 8 * m <= protocol.DIRECT_BYTES or k == 1:
        assert payload == 8 * m * k * (n - 1)
    else:
        assert payload == 8 * m * (n - 1) + 8 * m * (k - 1)


@pytest.mark.parametrize(("n", "m"), [(2, 500), (3, 500), (5, 20_000)])
def test_payload_and_rounds_of_a_shared_sum(n: int, m: int) -> None:
    frames: list[Frame] = []

    async def role(session: Session) -> int:
        secrets = await agree(session)
        before = session.costs.rounds
        await shared_sum(session, secrets, np.ones(m, np.uint64), ("p0", "p1"))
        return session.costs.rounds - before

    rounds = run(role, n, frames=frames)
    payload = sum(len(MaskedValues.FromString(f.body).data) for f in after_agreement(frames))
    assert payload == 8 * m * (n - 2)
    assert rounds == {"p0": int(n > 2), **dict.fromkeys(names(n)[1:], 0)}
