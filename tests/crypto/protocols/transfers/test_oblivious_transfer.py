from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.groups.ristretto255 import is_valid_points
from crypto.protocols.transfers.base_ot import receive_keys, send_keys
from crypto.protocols.transfers.oblivious_transfer import (
    MAX_MESSAGE_BYTES,
    receive_k_of_n,
    receive_one_of_n,
    receive_one_of_two,
    send_k_of_n,
    send_one_of_n,
    send_one_of_two,
)
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import BlindedPositions, ChoicePoints, TransferKey
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

SENDER, RECEIVER = "s", "r"


def run(sender: Any, receiver: Any, *, seed: int = 0, frames: list[Frame] | None = None) -> tuple[Any, Any]:
    observe = None if frames is None else frames.append
    out = run_parties([SENDER, RECEIVER], {SENDER: sender, RECEIVER: receiver}, seed=seed, observe=observe)
    return out[SENDER], out[RECEIVER]


def base(choices: list[int], **options: Any) -> tuple[Any, Any]:
    return run(
        lambda session: send_keys(session.lane("ot"), RECEIVER, len(choices)),
        lambda session: receive_keys(session.lane("ot"), SENDER, np.array(choices, np.uint8)),
        **options,
    )


# -- base transfers ----------------------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None)
@given(choices=st.lists(st.integers(0, 1), max_size=20), seed=st.integers(0, 2**32))
def test_the_receiver_gets_the_key_of_its_choice(choices: list[int], seed: int) -> None:
    (zero, one), chosen = base(choices, seed=seed)
    picked = np.array(choices, bool)[:, None]
    assert (chosen == np.where(picked, one, zero)).all()
    assert len({key.tobytes() for key in (*zero, *one)}) == 2 * len(choices)


def test_one_round_and_the_bytes_of_the_paper() -> None:
    frames: list[Frame] = []

    async def receiver(session: Session) -> int:
        before = session.costs.rounds
        await receive_keys(session.lane("ot"), SENDER, np.zeros(128, np.uint8))
        return session.costs.rounds - before

    _, rounds = run(lambda s: send_keys(s.lane("ot"), RECEIVER, 128), receiver, frames=frames)
    assert rounds == 1
    own = [f for f in frames if f.lane == "/ot"]
    assert sum(len(ChoicePoints.FromString(f.body).data) for f in own if f.sender == RECEIVER) == 128 * 64
    assert sum(len(TransferKey.FromString(f.body).point) for f in own if f.sender == SENDER) == 32


def test_the_receivers_points_do_not_tell_its_choices() -> None:
    """Both points of every transfer are valid; their bytes are distributed alike whatever is chosen.

    Two-sided chi-square of the low bits of 2,000 points, which fails with probability 1e-6.
    """

    def low_bits(choice: int) -> np.ndarray:
        frames: list[Frame] = []
        base([choice] * 1000, frames=frames, seed=choice)
        data = b"".join(
            ChoicePoints.FromString(f.body).data for f in frames if f.lane == "/ot" and f.sender == RECEIVER
        )
        points = np.frombuffer(data, np.uint8).reshape(2, 1000, 32)
        assert is_valid_points(points.reshape(-1, 32)).all()
        return np.stack([np.bincount(points[branch, :, 5] >> 4, minlength=16) for branch in (0, 1)])

    zero, one = low_bits(0), low_bits(1)
    for branch in (0, 1):
        a, b = zero[branch].astype(float), one[branch].astype(float)
        assert ((a - b) ** 2 / np.maximum(a + b, 1)).sum() < 56  # 15 degrees of freedom


# -- messages ----------------------------------------------------------------------------------------------------------
@settings(max_examples=20, deadline=None)
@given(
    transfers=st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 1)), max_size=8),
    seed=st.integers(0, 2**32),
)
def test_one_of_two_messages_of_any_length(transfers: list[tuple[bytes, bytes, int]], seed: int) -> None:
    _, got = run(
        lambda s: send_one_of_two(s.lane("ot"), RECEIVER, [(zero, one) for zero, one, _ in transfers]),
        lambda s: receive_one_of_two(s.lane("ot"), SENDER, [choice for *_, choice in transfers]),
        seed=seed,
    )
    assert got == [(zero, one)[choice] for zero, one, choice in transfers]


@settings(max_examples=20, deadline=None)
@given(data=st.data(), messages=st.lists(st.binary(max_size=40), min_size=1, max_size=12), seed=st.integers(0, 2**32))
def test_k_of_n_messages(data: st.DataObject, messages: list[bytes], seed: int) -> None:
    n = len(messages)
    choices = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n))
    _, got = run(
        lambda s: send_k_of_n(s.lane("ot"), RECEIVER, messages, len(choices)),
        lambda s: receive_k_of_n(s.lane("ot"), SENDER, choices, n),
        seed=seed,
    )
    assert got == [messages[choice] for choice in choices]


def test_one_of_n_messages() -> None:
    messages = [b"m%d" % i for i in range(50)]
    _, got = run(
        lambda s: send_one_of_n(s.lane("ot"), RECEIVER, messages),
        lambda s: receive_one_of_n(s.lane("ot"), SENDER, 31, 50),
    )
    assert got == b"m31"


def test_messages_that_were_not_chosen_stay_under_keys_that_the_receiver_lacks() -> None:
    """With the unchosen message changed the receiver's view has the same shape, and shows nothing of it."""

    def view(unchosen: bytes) -> list[Frame]:
        frames: list[Frame] = []
        run(
            lambda s: send_one_of_two(s.lane("ot"), RECEIVER, [(b"chosen", unchosen)]),
            lambda s: receive_one_of_two(s.lane("ot"), SENDER, [0]),
            frames=frames,
        )
        return [f for f in frames if f.receiver == RECEIVER and f.lane.startswith("/ot")]

    first, second = view(b"secret"), view(b"public")
    assert [(f.type, len(f.body)) for f in first] == [(f.type, len(f.body)) for f in second]
    assert all(b"secret" not in f.body for f in first)


def test_the_same_seed_aside_blinded_positions_are_never_the_same() -> None:
    seen: Counter[bytes] = Counter()
    for seed in range(20):
        frames: list[Frame] = []
        run(
            lambda s: send_one_of_n(s.lane("ot"), RECEIVER, [b"a", b"b"]),
            lambda s: receive_one_of_n(s.lane("ot"), SENDER, 0, 2),
            seed=seed,
            frames=frames,
        )
        kind = BlindedPositions.DESCRIPTOR.full_name
        seen.update(BlindedPositions.FromString(f.body).data for f in frames if f.type == kind)
    assert set(seen.values()) == {1}


@pytest.mark.parametrize(("choices", "n"), [([], 3), ([0, 1, 2, 0], 3), ([3], 3), ([-1], 3)])
def test_impossible_choices_are_refused(choices: list[int], n: int) -> None:
    async def role(session: Session) -> None:
        await receive_k_of_n(session.lane("ot"), SENDER, choices, n)

    with pytest.raises(ValueError, match=r"between|positions"):
        run_parties([SENDER, RECEIVER], {SENDER: _nothing, RECEIVER: role})


async def _nothing(session: Session) -> None:
    await session.recv(RECEIVER, TransferKey)


def test_messages_have_a_limit() -> None:
    async def role(session: Session) -> None:
        await send_k_of_n(session.lane("ot"), RECEIVER, [bytes(MAX_MESSAGE_BYTES + 1)], 1)

    with pytest.raises(ValueError, match="at most"):
        run(role, lambda s: receive_k_of_n(s.lane("ot"), SENDER, [0], 1))
