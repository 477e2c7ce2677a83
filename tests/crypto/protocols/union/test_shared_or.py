"""ORs on shares: right for any bits, and nothing in any party's or coalition's shares."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.xor_sharing import reconstruct_bits
from crypto.protocols.union.shared_or import pairs_of, shared_or
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from tests.crypto.protocols.set_union_world import NAMES
from tests.examples import examples
from tests.world import run_parties


def shares_of(bits: dict[str, np.ndarray], seed: int = 0, frames: list[Frame] | None = None):
    async def role(session):
        pairs = pairs_of(session.lane("pairs"))
        share = await shared_or(session.lane("or"), pairs, bits[session.me])
        return share, session.costs.rounds

    observe = None if frames is None else frames.append
    ends = run_parties(tuple(bits), role, seed=seed, observe=observe)
    return {name: share for name, (share, _) in ends.items()}


@examples(4, 20)
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


@pytest.mark.parametrize("honest", NAMES[:3])
@pytest.mark.parametrize("value", [0, 1])
def test_what_the_others_get_from_one_party_is_uniform_given_their_own_bits(honest, value):
    """Corrections beside every bit of the colluders, who hold what could correlate with them."""
    random = np.random.default_rng(1)
    bits = {name: random.integers(0, 2, MANY, np.uint8) for name in NAMES[:3]} | {
        honest: np.full(MANY, value, np.uint8)
    }
    frames: list[Frame] = []
    shares = shares_of(bits, frames=frames)
    known = [bits[name] for name in bits if name != honest]
    known += [np.unpackbits(shares[n].planes[0], bitorder="little")[:MANY] for n in bits if n != honest]
    sent = [f for f in frames if f.sender == honest and f.type == EncryptedMessages.DESCRIPTOR.full_name]
    assert len(sent) == len(NAMES[:3]) - 1 - NAMES.index(honest)
    for frame in sent:
        message = EncryptedMessages()
        message.ParseFromString(frame.body)
        came = np.unpackbits(np.frombuffer(message.data, np.uint8), bitorder="little")[:MANY]
        for other in (np.zeros(MANY, np.uint8), *known):
            assert abs(int((came ^ other).sum()) - MANY / 2) < 6 * SIGMA


def test_what_is_sent_depends_on_the_number_of_bits_alone():
    sizes = []
    for value in (0, 1):
        frames: list[Frame] = []
        shares_of({name: np.full(1000, value, np.uint8) for name in NAMES[:4]}, frames=frames)
        sizes.append(sorted((f.sender, f.receiver, f.lane, f.seq, f.type, f.round, len(f.body)) for f in frames))
    assert sizes[0] == sizes[1]
