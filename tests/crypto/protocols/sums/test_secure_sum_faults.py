"""Wrong, repeated and lost messages of a secure sum."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
import pytest

from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import secure_sum
from link.errors import ComineError, MalformedMessage, PeerError
from link.session import Session
from tests.crypto.protocols.sums.summing import (
    FORMS,
    THREE,
    Form,
    Role,
    Twice,
    Words,
    added,
    draw,
    form,
    outcomes,
    sharing,
    summing,
)


def deviating(vectors: Mapping[str, Words], role: Role) -> dict[str, Role]:
    return {"p0": summing(vectors), "p1": summing(vectors), "p2": role}


@pytest.mark.parametrize("size", [0, 8, 10, 400_000])
def test_another_length_of_slices_ends_all_parties(size: int) -> None:
    """Some of the slices may have the expected length; who sees another one tells everybody."""
    with form("sliced"):
        ended = outcomes(deviating(draw(3, 9), summing({"p2": np.ones(size, np.uint64)})), tell=True)
    assert [type(end) for end in ended.values()] == [MalformedMessage] * 3


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
