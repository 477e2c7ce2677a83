"""ORs on shares: right for any bits, and nothing in any party's or coalition's shares."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from crypto.primitives.shares.xor import reconstruct_bits
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.union import shared_or as module
from crypto.protocols.union.shared_or import shared_or
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from tests.examples import examples
from tests.world import NAMES, run_parties

pytestmark = pytest.mark.turn(3)


def shares_of(bits: dict[str, np.ndarray], seed: int = 0, frames: list[Frame] | None = None):
    async def role(session):
        pairs = pairs_of(session.lane("pairs"))
        share = await shared_or(session.lane("or"), pairs, bits[session.me])
        return share, session.costs.rounds

    observe = None if frames is None else frames.append
    ends = run_parties(tuple(bits), role, seed=seed, observe=observe)
    return {name: share for name, (share, _) in ends.items()}


@examples(2, 6)
@given(n=st.integers(2, 7), number=st.integers(1, 300), seed=st.integers(0, 99), data=st.data())
def test_the_or_of_all_bits(n, number, seed, data):
    density = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    random = np.random.default_rng(seed)
    bits = {name: (random.random(number) < density).astype(np.uint8) for name in NAMES[:n]}
    opened = reconstruct_bits(list(shares_of(bits, seed).values()))
    assert (opened == np.bitwise_or.reduce(list(bits.values()))).all()


MANY = 20_000
SIGMA = np.sqrt(MANY) / 2


def ones(planes: np.ndarray) -> int:
    return int(np.unpackbits(planes, bitorder="little")[:MANY].sum())


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_shares_of_all_but_one_are_uniform_whatever_the_bits_are(n, value):
    """Any XOR of some, but not all, shares is half ones; 6 standard deviations, so wrong once in 10^9."""
    bits = {name: np.full(MANY, value, np.uint8) for name in NAMES[:n]}
    planes = [share.planes for share in shares_of(bits).values()]
    for size in range(1, n):
        for some in combinations(planes, size):
            assert abs(ones(np.bitwise_xor.reduce(some)) - MANY / 2) < 6 * SIGMA


def unpacked(packed: list[np.ndarray]) -> np.ndarray:
    return np.unpackbits(np.concatenate(packed), bitorder="little")[:MANY]


def view_of_all_but(honest: str, bits: dict[str, np.ndarray], seed: int) -> list[np.ndarray]:
    """All that the others have of one party, each MANY bits: what they chose of its messages or offered to it, its
    corrections, and the shares of all."""
    had: dict[tuple[str, str, int], list[np.ndarray]] = {}
    frames: list[Frame] = []

    def kept(transfers: Any) -> Any:
        async def keeping(lane: Session, peer: str, *args: Any) -> Any:
            async for each in transfers(lane, peer, *args):
                for number, part in enumerate(each if isinstance(each, tuple) else (each,)):
                    had.setdefault((lane.me, peer, number), []).append(part)
                yield each

        return keeping

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "receive_random", kept(module.receive_random))
        patched.setattr(module, "send_random", kept(module.send_random))
        shares = shares_of(bits, seed, frames)
    found = [unpacked(parts) for (name, peer, _), parts in sorted(had.items()) if name != honest and peer == honest]
    for frame in sorted(frames, key=lambda frame: frame.receiver):
        if frame.sender == honest and frame.type == EncryptedMessages.DESCRIPTOR.full_name:
            found.append(unpacked([np.frombuffer(EncryptedMessages.FromString(frame.body).data, np.uint8)]))
    return [*found, *(unpacked([share.planes[0]]) for share in shares.values())]


@pytest.mark.parametrize("honest", NAMES[:3])
def test_no_sum_of_what_all_others_have_tells_a_bit_that_the_or_does_not(honest):
    """Two worlds in which one bit of the others is 1, and the third party's bits are 0, or 1. By the others' bits every
    XOR of bits of their view, shares of the third included, is 1 as often in both: 7 standard deviations."""
    random = np.random.default_rng(1)
    one, other = (name for name in NAMES[:3] if name != honest)
    patterns = random.integers(1, 4, MANY)
    biases: list[list[np.ndarray]] = []
    for value in (0, 1):
        own = {one: (patterns & 1).astype(np.uint8), other: (patterns >> 1).astype(np.uint8)}
        bits = {name: own.get(name, np.full(MANY, value, np.uint8)) for name in NAMES[:3]}
        view = view_of_all_but(honest, bits, seed=value)
        assert len(view) == 7  # two of each of the others, and all shares
        cells = sum(bit.astype(np.int64) << place for place, bit in enumerate(view))
        counts = [np.bincount(cells[patterns == pattern], minlength=1 << len(view)) for pattern in (1, 2, 3)]
        biases.append([hadamard(len(each)) @ each / each.sum() for each in counts])
    for first, second, pattern in zip(*biases, (1, 2, 3), strict=True):
        assert (np.abs(first - second) < 7 * np.sqrt(2 / (patterns == pattern).sum())).all()


def test_what_is_sent_depends_on_the_number_of_bits_alone():
    sizes = []
    for value in (0, 1):
        frames: list[Frame] = []
        shares_of({name: np.full(1000, value, np.uint8) for name in NAMES[:4]}, frames=frames)
        sizes.append(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.round, len(f.body)) for f in frames))
    assert sizes[0] == sizes[1]
