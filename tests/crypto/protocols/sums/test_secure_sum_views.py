"""What parties of a secure sum see and open: sums of declared labels, and masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from crypto.protocols.sums import pairwise
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import secure_sum
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.secure_sum_pb2 import MaskedValues
from tests.crypto.mask_vectors import mask_vector
from tests.crypto.protocols.sums.summing import (
    FORMS,
    THREE,
    Form,
    Role,
    Words,
    after_agreement,
    draw,
    form,
    names,
    run,
    sharing,
    summing,
)
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

OPENING = Opening.DESCRIPTOR.full_name
MASKED = MaskedValues.DESCRIPTOR.full_name


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
