from __future__ import annotations

import copy
import pickle
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.errors import InternalError
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.world import run_parties

THREE = ("p0", "p1", "p2")


def draws(secrets: PairwiseSecrets, session: Session, purpose: str) -> dict[str, bytes]:
    context = secrets.context(session, purpose)
    return {peer: secrets.stream(peer, context).bytes(16) for peer in secrets.peers}


def alone(role: Callable[[Session], Awaitable[None]]) -> None:
    """Runs `role` at both of two parties, for what is the same whoever the peer is."""
    run_parties(("p0", "p1"), role)


def test_every_pair_draws_the_same_and_nobody_else_does() -> None:
    async def role(session: Session) -> dict[str, bytes]:
        return draws(await agree(session), session, "fakes")

    drawn = run_parties(THREE, role)
    pairs = {(a, b): drawn[a][b] for a in THREE for b in THREE if a != b}
    assert all(pairs[a, b] == pairs[b, a] for a, b in pairs)
    assert len(set(pairs.values())) == 3


def test_session_lane_purpose_and_count_separate_draws() -> None:
    async def role(session: Session) -> list[bytes]:
        secrets = await agree(session)
        lanes = (session, session.lane("x"), session.lane("y"))
        return [draws(secrets, lane, purpose)["p1"] for lane in lanes for purpose in "ab" for _ in range(2)]

    async def peer(session: Session) -> list[bytes]:
        await agree(session)
        return []

    runs = [run_parties(("p0", "p1"), {"p0": role, "p1": peer}, seed=seed)["p0"] for seed in (1, 2)]
    assert len({*runs[0], *runs[1]}) == 24


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 6), m=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_masks_of_all_parties_cancel(n: int, m: int, seed: int) -> None:
    parties = tuple(f"p{i}" for i in range(n))

    async def role(session: Session) -> np.ndarray:
        secrets = await agree(session)
        return secrets.mask(np.zeros(m, np.uint64), secrets.context(session, "sum"))

    masks = run_parties(parties, role, seed=seed)
    assert not np.any(sum(masks.values(), np.zeros(m, np.uint64)))
    if m:
        assert all(np.any(mask) for mask in masks.values())


def test_masking_leaves_the_values_as_they_are() -> None:
    async def role(session: Session) -> None:
        secrets = await agree(session)
        values = np.arange(5, dtype=np.uint64)
        masked = secrets.mask(values, secrets.context(session, "sum"))
        assert values.tolist() == [0, 1, 2, 3, 4]
        assert not np.array_equal(masked, values)

    alone(role)


def test_a_context_serves_once() -> None:
    async def role(session: Session) -> None:
        secrets = await agree(session)
        (peer,) = secrets.peers
        values = np.zeros(1, np.uint64)
        masking, drawing = secrets.context(session, "a"), secrets.context(session, "a")
        assert masking != drawing
        secrets.mask(values, masking)
        secrets.stream(peer, drawing)
        for context in (masking, drawing, b"never issued"):
            with pytest.raises(InternalError):
                secrets.mask(values, context)
            with pytest.raises(InternalError):
                secrets.stream(peer, context)

    alone(role)


def test_secrets_serve_only_the_session_that_agreed_upon_them() -> None:
    kept: dict[str, PairwiseSecrets] = {}

    async def first(session: Session) -> None:
        kept[session.me] = await agree(session)

    async def second(session: Session) -> None:
        with fails("E700"):
            kept[session.me].context(session, "sum")

    run_parties(("p0", "p1"), first, seed=1)
    run_parties(("p0", "p1"), second, seed=2)


def test_secrets_are_neither_shown_nor_copied() -> None:
    secrets = PairwiseSecrets(b"session", "p0", {"p1": b"S" * 32})
    assert "SSS" not in f"{secrets!r} {secrets}"
    with pytest.raises(TypeError):
        pickle.dumps(secrets)
    with pytest.raises(TypeError):
        copy.deepcopy(secrets)


def test_agreement_is_one_round_of_one_fresh_key_per_party() -> None:
    def agreement(seed: int) -> tuple[list[Frame], dict[str, int]]:
        frames: list[Frame] = []

        async def role(session: Session) -> int:
            await agree(session)
            return session.costs.rounds

        rounds = run_parties(THREE, role, seed=seed, observe=frames.append)
        return [f for f in frames if f.lane != "hello"], rounds

    frames, rounds = agreement(1)
    assert rounds == dict.fromkeys(THREE, 1)
    assert {(f.sender, f.receiver) for f in frames} == {(a, b) for a in THREE for b in THREE if a != b}
    assert [len(f.body) for f in frames] == [2 + 32] * 6
    assert len({f.body for f in frames}) == 3
    assert not {f.body for f in frames} & {f.body for f in agreement(2)[0]}
