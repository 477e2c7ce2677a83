from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.protocols.sums import pairwise
from crypto.protocols.sums import secure_sum as protocol
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import declared, secure_sum, shared_sum, slices
from link.errors import ComineError, MalformedMessage, PeerError, UnexpectedMessage
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub, MemoryTransport
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.secure_sum_pb2 import MaskedValues
from tests.crypto.mask_vectors import mask_vector
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform
from tests.errors import fails
from tests.world import run_parties, terms

Words = NDArray[np.uint64]
Role = Callable[[Session], Awaitable[Any]]

THREE = ("p0", "p1", "p2")
OPENING = Opening.DESCRIPTOR.full_name
MASKED = MaskedValues.DESCRIPTOR.full_name
DIRECT = protocol.DIRECT_BYTES // 8  # the longest vector that is opened whole to every receiver
FORMS = ("direct", "sliced")
Form = Literal["direct", "sliced"]
WORD_TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)
WORDS = st.one_of(st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1), st.integers(0, 2**64 - 1))


# -- running -----------------------------------------------------------------------------------------------------------
@contextmanager
def form(name: Form) -> Iterator[None]:
    """Makes vectors of any length take one of the two forms."""
    with patch.object(protocol, "DIRECT_BYTES", 1 << 40 if name == "direct" else -1):
        yield


def names(n: int) -> tuple[str, ...]:
    return tuple(f"p{i}" for i in range(n))


def draw(n: int, m: int, seed: int = 0) -> dict[str, Words]:
    generator = np.random.default_rng(seed)
    return {name: generator.integers(0, 2**64 - 1, m, dtype=np.uint64, endpoint=True) for name in names(n)}


def added(vectors: Mapping[str, Words]) -> list[int]:
    """The oracle: integers of any size."""
    return [sum(column) % 2**64 for column in zip(*(v.tolist() for v in vectors.values()), strict=True)]


def summing(vectors: Mapping[str, Words], to: tuple[str, ...] | None = None) -> Role:
    async def role(session: Session) -> Words | None:
        return await secure_sum(session, await agree(session), vectors[session.me], label="sum", to=to)

    return role


def sharing(vectors: Mapping[str, Words], holders: tuple[str, str]) -> Role:
    async def role(session: Session) -> AdditiveShare | None:
        return await shared_sum(session, await agree(session), vectors[session.me], holders)

    return role


def run(
    role: Role | Mapping[str, Role],
    n: int = 3,
    *,
    seed: int = 0,
    frames: list[Frame] | None = None,
    transport: Literal["memory", "grpc"] = "memory",
    maximum: int = 10**7,
) -> dict[str, Any]:
    statement = [declared("sum", names(n), maximum, what="test", when="test")]
    observe = None if frames is None else frames.append
    return run_parties(names(n), role, declared=statement, seed=seed, observe=observe, transport=transport)


class Twice(MemoryTransport):
    """Delivers every frame two times."""

    async def send(self, to: str, frame: Frame) -> None:
        await super().send(to, frame)
        await super().send(to, frame)


def outcomes(
    role: Role | Mapping[str, Role],
    n: int = 3,
    *,
    crash: tuple[str, int] | None = None,
    tell: bool = False,
    transport: type[MemoryTransport] = MemoryTransport,
) -> dict[str, Any]:
    """What each party ends with, a result or an error.

    `crash` takes a party away as its k-th frame leaves; `tell` aborts at all parties when one meets an error.
    """

    async def main() -> dict[str, Any]:
        sent: Counter[str] = Counter()

        def observe(frame: Frame) -> None:
            if frame.lane == "hello":
                return
            sent[frame.sender] += 1
            if (frame.sender, sent[frame.sender]) == crash:
                hub.crash(frame.sender)
                tasks[frame.sender].cancel()

        async def party(name: str) -> Any:
            session = await Session.establish(
                terms(names(n)),
                name,
                transport(hub, name),
                random=Randomness.from_seed(name.encode()),
                executor=executor,
                declared=[declared("sum", names(n), 10**6, what="test", when="test")],
                deadline_s=20,
            )
            try:
                return await (role[name] if isinstance(role, Mapping) else role)(session)
            except ComineError as error:
                if tell:
                    await session.abort(error)
                return error

        hub, executor = Hub(observe), ThreadExecutor(1)
        tasks = {name: asyncio.create_task(party(name)) for name in names(n)}
        ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
        executor.close()
        return dict(zip(tasks, ended, strict=True))

    return asyncio.run(main())


def after_agreement(frames: list[Frame]) -> list[Frame]:
    return [f for f in frames if f.lane not in ("hello", "/pairwise")]


# -- correctness -------------------------------------------------------------------------------------------------------
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


# -- disclosure --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", FORMS)
def test_an_undeclared_label_is_refused_and_nothing_leaves(name: Form) -> None:
    async def role(session: Session) -> None:
        await secure_sum(session, await agree(session), np.ones(9, np.uint64), label="another")

    frames: list[Frame] = []
    with form(name), fails("E404"):
        run(role, frames=frames)
    assert not after_agreement(frames)


def test_more_values_than_declared_are_refused() -> None:
    frames: list[Frame] = []
    with fails("E404"):
        run(summing(draw(3, 9)), frames=frames, maximum=8)
    assert not after_agreement(frames)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("to", [("p1",), ("p3", "p1"), None])
def test_only_receivers_are_sent_openings_of_the_declared_label(name: Form, to: tuple[str, ...] | None) -> None:
    frames: list[Frame] = []
    with form(name):
        run(summing(draw(4, 50), to), 4, frames=frames, maximum=50)
    opened = after_agreement(frames)
    assert {f.type for f in opened} == {OPENING}
    assert {Opening.FromString(f.body).label for f in opened} == {"sum"}
    assert {f.receiver for f in opened} == set(to or names(4))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_shared_sum_opens_nothing_and_reaches_the_first_holder_only(n: int) -> None:
    frames: list[Frame] = []
    run(sharing(draw(n, 50), ("p1", "p0")), n, frames=frames)
    sent = after_agreement(frames)
    assert {f.type for f in sent} <= {MASKED}
    assert sorted((f.sender, f.receiver) for f in sent) == [(name, "p1") for name in names(n)[2:]]


@pytest.mark.parametrize("name", FORMS)
def test_no_party_sends_one_receiver_more_values_than_the_vector_holds(name: Form) -> None:
    async def role(session: Session) -> int:
        await secure_sum(session, await agree(session), np.ones(10, np.uint64), label="sum")
        assert all(line.label == "sum" for line in session.ledger.record)
        return len(session.ledger.record)

    with form(name):
        assert run(role, 3, maximum=10) == dict.fromkeys(THREE, 1 if name == "direct" else 4)


# -- leakage -----------------------------------------------------------------------------------------------------------
class Recorded:
    """One run with everything that its parties sent and, for the colluders, the secrets that they hold."""

    def __init__(self, role: Role, n: int, seed: int) -> None:
        self.secrets: dict[str, dict[str, bytes]] = {}
        self.context = b""
        frames: list[Frame] = []
        real = pairwise.add_masks

        def spy(values: Words, secrets: Mapping[str, bytes], me: str, context: bytes) -> None:
            self.secrets[me], self.context = dict(secrets), context
            real(values, secrets, me, context)

        with patch.object(pairwise, "add_masks", spy):
            self.results = run(role, n, seed=seed, frames=frames)
        self.frames = after_agreement(frames)

    def seen(self, sender: str, receiver: str) -> Words:
        """The masked words of the only message that went from one to the other."""
        (frame,) = [f for f in self.frames if (f.sender, f.receiver) == (sender, receiver)]
        body = (
            Opening.FromString(frame.body).values if frame.type == OPENING else MaskedValues.FromString(frame.body).data
        )
        return np.frombuffer(body, np.uint64)

    def stripped(self, sender: str, receiver: str, colluders: tuple[str, ...]) -> Words:
        """What is left of it when the colluders have taken off every mask that one of them knows."""
        masked = self.seen(sender, receiver)
        known = {name: self.secrets[name][sender] for name in colluders}
        return masked - mask_vector(known, sender, self.context, len(masked))


def test_the_statistic_notices_what_it_should() -> None:
    with pytest.raises(AssertionError):
        assert_uniform(np.arange(20_000, dtype=np.uint64))
    with pytest.raises(AssertionError):
        assert_alike(np.zeros(1000, np.uint64), np.ones(1000, np.uint64))


def columns(*firsts: int) -> dict[str, Words]:
    return {name: np.full(256, first, np.uint64) for name, first in zip(names(len(firsts)), firsts, strict=True)}


def test_a_view_of_one_party_does_not_tell_equal_sums_apart() -> None:
    def view(vectors: dict[str, Words], first_seed: int) -> Words:
        """What p0 can make of p1's vector, over many fresh runs."""
        runs = (Recorded(summing(vectors), 3, seed) for seed in range(first_seed, first_seed + 40))
        return np.concatenate([one.stripped("p1", "p0", ("p0",)) for one in runs])

    uneven, even = view(columns(5, 0, 10), 1000), view(columns(5, 10, 0), 2000)
    assert_uniform(uneven)
    assert_uniform(even)
    assert_alike(uneven, even)


@pytest.mark.parametrize("name", FORMS)
def test_the_shape_of_the_view_depends_on_public_sizes_only(name: Form) -> None:
    def shape(seed: int) -> list[tuple[Any, ...]]:
        frames: list[Frame] = []
        run(summing(draw(4, 60, seed)), 4, seed=seed, frames=frames)
        return [(f.sender, f.receiver, f.lane, f.seq, f.type, len(f.body), f.last, f.round) for f in frames]

    with form(name):
        assert sorted(shape(1)) == sorted(shape(2))


COLLUDERS = ("p0", "p1")


@pytest.mark.parametrize("kind", ["opened", "shared"])
def test_colluders_learn_only_the_sum_of_the_others(kind: str) -> None:
    """Four parties, two of them collude; in the shared form they are the two holders, the worst case."""
    vectors = columns(1, 2, 7, 40)
    role = summing(vectors) if kind == "opened" else sharing(vectors, ("p0", "p1"))
    left: dict[str, list[Words]] = {"p2": [], "p3": []}
    for seed in range(30):
        recorded = Recorded(role, 4, seed)
        rest = {name: recorded.stripped(name, "p0", COLLUDERS) for name in left}
        assert np.all(rest["p2"] + rest["p3"] == 47)
        for name, words in rest.items():
            left[name].append(words)
    for words in left.values():
        assert_uniform(np.concatenate(words))


def test_all_but_one_would_learn_the_last_ones_vector() -> None:
    """Why the bound is n - 2: the stripping above does work once every mask is known."""
    vectors = columns(1, 2, 7)
    recorded = Recorded(summing(vectors), 3, 0)
    assert np.all(recorded.stripped("p2", "p0", ("p0", "p1")) == 7)


def test_two_holders_of_three_parties_learn_the_third_ones_vector_and_one_holder_does_not() -> None:
    recorded = Recorded(sharing(columns(1, 2, 7), ("p0", "p1")), 3, 0)
    assert np.all(recorded.stripped("p2", "p0", ("p0", "p1")) == 7)
    assert_uniform(recorded.stripped("p2", "p0", ("p0",)))


def test_neighbours_cannot_take_differences_as_in_the_ring() -> None:
    """The ring's attack (see test_ring_sum.py) on five parties' recorded messages gives noise here."""
    recorded = Recorded(summing(columns(1, 2, 7, 40, 80)), 5, 0)
    for preceding, following in (("p1", "p3"), ("p3", "p1")):
        assert_uniform(recorded.stripped("p2", preceding, (preceding, following)))
    assert_uniform(recorded.seen("p2", "p3") - recorded.seen("p1", "p3"))


def test_the_same_inputs_are_never_masked_alike() -> None:
    vectors = draw(3, 30)

    async def role(session: Session) -> None:
        secrets = await agree(session)
        for lane in (session, session, session.lane("x")):
            await secure_sum(lane, secrets, vectors[session.me], label="sum")

    frames: list[Frame] = []
    run(role, seed=1, frames=frames)
    run(role, seed=2, frames=frames)
    opened = [f for f in after_agreement(frames) if (f.sender, f.receiver) == ("p0", "p1")]
    assert len(opened) == len({Opening.FromString(f.body).values for f in opened}) == 6


# -- faults ------------------------------------------------------------------------------------------------------------
def deviating(vectors: Mapping[str, Words], role: Role) -> dict[str, Role]:
    return {"p0": summing(vectors), "p1": summing(vectors), "p2": role}


@pytest.mark.parametrize("size", [0, 8, 10, 400_000])
def test_another_length_is_malformed_and_names_its_sender(size: int) -> None:
    with form("direct"):
        ended = outcomes(deviating(draw(3, 9), summing({"p2": np.ones(size, np.uint64)})))
    assert [(type(ended[p]), ended[p].party) for p in ("p0", "p1")] == [(MalformedMessage, "p2")] * 2


@pytest.mark.parametrize("size", [0, 8, 10, 400_000])
def test_another_length_of_slices_ends_all_parties(size: int) -> None:
    """Some of the slices may have the expected length; who sees another one tells everybody."""
    with form("sliced"):
        ended = outcomes(deviating(draw(3, 9), summing({"p2": np.ones(size, np.uint64)})), tell=True)
    assert [type(end) for end in ended.values()] == [MalformedMessage] * 3


@pytest.mark.parametrize("size", [8, 10, 400_000])
def test_another_length_of_a_shared_sum_is_malformed(size: int) -> None:
    vectors = draw(3, 9) | {"p2": np.ones(size, np.uint64)}
    ended = outcomes(sharing(vectors, ("p0", "p1")))
    assert (type(ended["p0"]), ended["p0"].party) == (MalformedMessage, "p2")


def test_another_type_of_message_is_unexpected() -> None:
    async def role(session: Session) -> None:
        await agree(session)
        for peer in session.others:
            await session.send_array(peer, MaskedValues, np.ones(9, np.uint64))

    ended = outcomes(deviating(draw(3, 9), role))
    assert [(type(ended[p]), ended[p].party) for p in ("p0", "p1")] == [(UnexpectedMessage, "p2")] * 2


def test_a_vector_opened_twice_does_not_enter_the_next_sum() -> None:
    vectors = draw(3, 9)

    def twice(extra: bool) -> Role:
        async def role(session: Session) -> None:
            secrets = await agree(session)
            await secure_sum(session, secrets, vectors[session.me], label="sum")
            if extra:
                await session.open("sum", vectors[session.me])
            await secure_sum(session, secrets, vectors[session.me][:8], label="sum")

        return role

    ended = outcomes({"p0": twice(False), "p1": twice(False), "p2": twice(True)})
    assert [(type(ended[p]), ended[p].party) for p in ("p0", "p1")] == [(MalformedMessage, "p2")] * 2


@pytest.mark.parametrize("name", FORMS)
def test_frames_that_come_twice_change_nothing(name: Form) -> None:
    vectors = draw(3, 9)
    with form(name):
        ended = outcomes(summing(vectors), transport=Twice)
    assert [ended[p].tolist() for p in THREE] == [added(vectors)] * 3


@pytest.mark.parametrize("name", [*FORMS, "shared"])
@pytest.mark.parametrize("victim", THREE)
def test_whoever_is_lost_is_named_at_every_frame(name: str, victim: str) -> None:
    vectors = draw(3, 9)
    role = sharing(vectors, ("p0", "p1")) if name == "shared" else summing(vectors)
    lost, k = 0, 0
    with form("sliced" if name == "sliced" else "direct"):
        while True:
            k += 1
            ended = outcomes(role, crash=(victim, k))
            if not isinstance(ended[victim], asyncio.CancelledError):
                break  # fewer than k frames left it
            for survivor in set(THREE) - {victim}:
                end = ended[survivor]
                if isinstance(end, ComineError):
                    assert (type(end), end.party) == (PeerError, victim)
                    lost += 1
                elif isinstance(end, np.ndarray):
                    assert end.tolist() == added(vectors)
    assert lost > 0
    sent_in_sum = {"direct": 2, "sliced": 4, "shared": int(victim == "p2")}[name]
    assert k == 1 + 2 + sent_in_sum


# -- costs, as exact figures: a change of the wire shows here ----------------------------------------------------------
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
