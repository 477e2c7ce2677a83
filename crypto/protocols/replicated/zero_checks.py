"""Whether bits of three holders are all zero: what two of them tell the third, which can read it only if both tell it.

Of zeros the component that a holder lacks is the XOR of those that it has, so it knows their digests. Both others have
that component, and it hears of it from both. Each sends its digests under a mask that the other sends: so whoever has
found that the receiver deviates keeps it, by its own silence, from what the other, who need not know, has sent. So
that nobody can change what the receiver reads by sending another mask, each also sends the hash of the mask that it
has from the other: the two draw both masks from what they have in common.

Rounds: none, these words go with others. Bytes: 64 for each share, and 32, from a holder to each other one.
Adversary: malicious, one of the three: an honest receiver reads what an honest holder's share says, or contradictions.
    In the random oracle model a mask is hidden by its hash: it is 32 bytes or more, of which the receiver knows none.
Leakage: whether the bits are all zero, and no more where they are; nothing to a receiver whom one of the two tells
    nothing.

Source: Furukawa, Lindell, Nof and Weinstein, EUROCRYPT 2017, section 2.3 (comparing views by hashes); Shamir, "How to
Share a Secret", CACM 22(11), 1979 (two shares of two).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.protocols.replicated.and_proofs import Common
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, digest
from protos.v1.verified_pb2 import ProofHolds

COMMITMENT_BYTES: Final = 32


def told_bytes(shares: int) -> int:
    """Bytes of what a holder tells another of so many shares."""
    return 2 * DIGEST_BYTES * shares + COMMITMENT_BYTES * bool(shares)


def tell(message: ProofHolds, components: Sequence[Planes], common: Common, *, earlier: bool) -> None:
    """Adds to a message what its receiver is told of components that it lacks.

    Args:
        message: To be filled.
        components: Of each share.
        common: Drawn with the other holder of these components.
        earlier: Whether that one is the holder after this one.
    """
    if not components:
        return
    own, other = common.covers if earlier else common.covers[::-1]
    message.digests = _under(own, b"".join(digest(planes) for planes in components))
    message.mask, message.commitment = other, hashlib.sha256(own).digest()


def are_zeros(shares: Sequence[ReplicatedBits], one: ProofHolds, other: ProofHolds) -> list[bool] | None:
    """Whether each share is of zeros alone, by what both others tell; None where they contradict each other."""
    if not shares:
        return []
    for teller, hider in ((one, other), (other, one)):
        if hashlib.sha256(hider.mask).digest() != teller.commitment:
            return None
    told = _under(other.mask, one.digests)
    if told != _under(one.mask, other.digests):
        return None
    expected = [digest(share.own ^ share.following) for share in shares]
    return [told[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES] == each for place, each in enumerate(expected)]


def _under(mask: bytes, octets: bytes) -> bytes:
    return (np.frombuffer(mask, np.uint8) ^ np.frombuffer(octets, np.uint8)).tobytes()
