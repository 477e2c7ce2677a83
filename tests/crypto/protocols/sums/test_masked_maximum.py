"""The masked maximum: the largest number, and nothing of whose it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.protocols.sums.masked_maximum import LABEL, WORD_BYTES, declared, masked_maximum
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.world import NAMES, run_parties

MOST = (5, 3)


def run(
    own: Mapping[str, Sequence[int]], most: Sequence[int] = MOST, *, seed: int = 0, frames: list[Frame] | None = None
) -> dict[str, tuple[int, ...]]:
    async def role(session: Session) -> tuple[int, ...]:
        return await masked_maximum(session.lane("here"), await agree(session), own[session.me], most)

    lines = [declared(tuple(own), sum(most))]
    return run_parties(tuple(own), role, declared=lines, seed=seed, observe=None if frames is None else frames.append)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=6),
    st.integers(0, 99),
)
def test_all_learn_the_largest_of_each_number(numbers: list[tuple[int, int]], seed: int) -> None:
    own = dict(zip(NAMES, numbers, strict=False))
    largest = tuple(max(each) for each in zip(*numbers, strict=True))
    assert run(own, seed=seed) == dict.fromkeys(own, largest)


def words_seen(frames: Sequence[Frame], party: str) -> dict[str, NDArray[np.uint64]]:
    """By sender, the words that a party is sent."""
    openings = [f for f in frames if f.receiver == party and f.type == Opening.DESCRIPTOR.full_name]
    return {f.sender: np.frombuffer(Opening.FromString(f.body).values, "<u8") for f in openings}


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=3, max_size=6), st.data())
def test_the_view_can_be_made_from_ones_own_number_and_the_largest_of_the_others(
    numbers: list[int], data: st.DataObject
) -> None:
    """Whoever of the others holds what: kinds and sizes are those of any run with this maximum of the others.

    The words of each other party are masked, so alone they are uniform; their sum less this party's own is 0 beyond the
    maximum of the others and a sum of uniform words before it. Equal words in two runs, or a word that is 0 before the
    maximum, would be a coincidence of probability below 2^-55 over all runs here.
    """
    others = data.draw(st.permutations(numbers[1:]))
    raised = data.draw(st.integers(0, max(numbers[1:])))  # of all that are not the largest
    first = max(others)
    other = [first if place == others.index(first) else raised for place in range(len(others))]
    views = []
    for world in (numbers[1:], other):
        frames: list[Frame] = []
        run({name: (n,) for name, n in zip(NAMES, [numbers[0], *world], strict=False)}, (5,), frames=frames)
        received = [f for f in frames if f.receiver == NAMES[0]]
        views.append(Counter((f.sender, f.lane, f.seq, f.type, f.last, f.round, len(f.body)) for f in received))
        seen = words_seen(frames, NAMES[0])
        assert len(seen) == len(world)
        drawn = np.concatenate(list(seen.values()))
        assert len(set(drawn.tolist())) == len(drawn)
        assert drawn.all()
    assert views[0] == views[1]


def test_words_of_those_who_reach_a_place_are_random() -> None:
    """The sum, less the masks: random where somebody reaches, in every run anew; 0 where nobody does."""
    totals = []
    for seed in range(6):
        frames: list[Frame] = []
        run({"north": (1,), "south": (3,), "east": (3,)}, (5,), seed=seed, frames=frames)
        by_sender = {f.sender: f for f in frames if f.type == Opening.DESCRIPTOR.full_name}
        values = [np.frombuffer(Opening.FromString(f.body).values, "<u8") for f in by_sender.values()]
        totals.append(np.sum(values, axis=0, dtype=np.uint64))
    reached = np.array(totals)[:, :3]
    assert len(set(reached.ravel().tolist())) == reached.size
    assert not np.array(totals)[:, 3:].any()
    bits = np.unpackbits(reached.view(np.uint8)).mean()
    # 6·3·64 fair bits: the mean is off by .12, eight standard deviations, with probability below 2^-45
    assert abs(bits - 0.5) < 0.12


def test_only_the_maximum_is_declared_and_its_words_counted() -> None:
    line = declared(("a", "b", "c"), 8)
    assert (line.label, line.recipients, line.maximum) == (LABEL, {"a", "b", "c"}, 8)
    assert "to each party, the largest of the others'" in line.what
    assert "the other's" in declared(("a", "b"), 8).what
    assert np.dtype(np.uint64).itemsize == WORD_BYTES


@pytest.mark.parametrize("number", [-1, 6])
def test_a_number_beyond_the_largest_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 5"):
        run({"north": (number, 0), "south": (0, 0)})


def test_what_is_no_number_in_unary_is_refused() -> None:
    """South knows north's words beforehand and takes the first place back, though it reaches the second."""

    frames: list[Frame] = []
    own = {"north": (0,), "south": (2,)}
    run(own, (3,), frames=frames)
    theirs = words_seen(frames, "south")

    def turned(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.sender == "south":
            opening = Opening.FromString(frame.body)
            words = np.frombuffer(opening.values, "<u8").copy()
            words[:1] = -theirs["north"][:1]
            opening.values = words.tobytes()
            frame.body = opening.SerializeToString()

    async def role(session: Session) -> None:
        await masked_maximum(session.lane("here"), await agree(session), own[session.me], (3,))

    with fails("E400"):
        run_parties(tuple(own), role, declared=[declared(tuple(own), 3)], observe=turned)


def test_a_maximum_below_ones_own_number_is_refused() -> None:
    """South takes all of north's words back, so that nobody would seem to reach any place."""
    frames: list[Frame] = []
    own = {"north": (2,), "south": (0,)}
    run(own, (3,), frames=frames)
    theirs = words_seen(frames, "south")

    def turned(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.sender == "south":
            opening = Opening.FromString(frame.body)
            opening.values = (-theirs["north"]).tobytes()
            frame.body = opening.SerializeToString()

    async def role(session: Session) -> None:
        await masked_maximum(session.lane("here"), await agree(session), own[session.me], (3,))

    with fails("E400"):
        run_parties(tuple(own), role, declared=[declared(tuple(own), 3)], observe=turned)
