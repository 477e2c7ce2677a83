"""What two holders tell a third of bits that are to be zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated_bits import ReplicatedBits
from crypto.protocols.replicated.and_proofs import Common, drawn
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, digest
from crypto.protocols.replicated.zero_checks import COMMITMENT_BYTES, are_zeros, tell, told_bytes
from protos.v1.verified_pb2 import ProofHolds

HOLDERS = ("0", "1", "2")
COMPONENTS = np.random.default_rng(1).integers(0, 256, (3, 2, 3, 5)).astype(np.uint8)  # of two shares


def of_zeros(*, wrong: int | None = None) -> list[ReplicatedBits]:
    """The third's shares, the components 2 and 0."""
    held = COMPONENTS.copy()
    held[0] = held[1] ^ held[2]
    if wrong is not None:
        held[0, wrong, 1, 2] ^= 8
    return [ReplicatedBits(one, other, "2", HOLDERS) for one, other in zip(held[2], held[0], strict=True)]


def common(seed: int = 0, shares: int = 2) -> Common:
    return drawn(Randomness.from_seed(seed), 1, shares * DIGEST_BYTES)


def told(of: Common, shares: int = 2) -> tuple[ProofHolds, ProofHolds]:
    """By holder 0, the earlier, and holder 1, who both have component 1; the third hears the later one first."""
    messages = ProofHolds(), ProofHolds()
    for message, earlier in zip(messages, (True, False), strict=True):
        tell(message, list(COMPONENTS[1, :shares]), of, earlier=earlier)
    return messages[1], messages[0]


def test_the_third_reads_which_shares_are_of_zeros() -> None:
    assert are_zeros(of_zeros(), *told(common())) == [True, True]
    assert are_zeros(of_zeros(wrong=1), *told(common())) == [True, False]
    assert are_zeros([], *told(common(shares=0), 0)) == []


def test_one_of_the_two_who_tells_something_else_is_noticed_whatever_it_is() -> None:
    """It knows both masks; so it might add to what the other says, if it could send another mask."""
    for place in range(2):
        for fields in (["digests"], ["mask"], ["commitment"], ["digests", "mask"], ["digests", "mask", "commitment"]):
            messages = told(common())
            for field in fields:
                octets = bytearray(getattr(messages[place], field))
                octets[5] ^= 1
                setattr(messages[place], field, bytes(octets))
            assert are_zeros(of_zeros(), *messages) is None


@pytest.mark.parametrize("place", [0, 1])
def test_what_one_tells_says_nothing_without_the_other(place: int) -> None:
    """It is uniform, and the hash of a mask that the receiver does not have."""
    said: list[Any] = [told(common(seed))[place] for seed in range(200)]
    bits = np.unpackbits(np.frombuffer(b"".join(each.digests + each.mask for each in said), np.uint8).reshape(200, -1))
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / len(bits) ** 0.5
    plain = b"".join(digest(planes) for planes in COMPONENTS[1])
    assert not any(each.digests == plain for each in said)
    assert all(len(each.commitment) == COMMITMENT_BYTES for each in said)
    assert told_bytes(2) == len(said[0].digests) + len(said[0].mask) + COMMITMENT_BYTES
