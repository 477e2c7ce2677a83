"""The OR of one bit of each party, opened to all, computed among three of whom one may deviate.

    1  deal      every party deals its bits to the three (`dealing`)
    2  circuits  the three take the ORs, of which each proves its parts of all ANDs (`verified_sums.checked`)
    3  open      the ORs: every component comes from two holders (`crosschecks`)

Rounds: as of `verified_sums`, ⌈log2 n⌉ for the circuits, and 1. ANDs: n − 1 for each bit, of n parties.

Output: the ORs, to all parties.
Adversary: malicious with abort, one of the three together with any parties that are none: the ORs are those of the bits
    that were dealt, or an error, but with probability 2^-40 a block. A party that deviates chooses its bits without
    knowing those of others.
Collusion: any two of the three can compute all parties' bits.
Leakage: how many bits there are.

Source: that of `verified_sums`.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.circuits import any_of, planes_by_step
from crypto.protocols.replicated.crosschecks import opened
from crypto.protocols.replicated.dealing import rest_of
from crypto.protocols.replicated.verified_sums import checked, nothing
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session

BLOCK: Final = 1 << 19  # bits at once; with 64 parties what a block keeps stays below 110 MB

Bits = NDArray[np.uint8]


async def verified_or(session: Session, secrets: PairwiseSecrets, bits: Bits, holders: Holders3, *, label: str) -> Bits:
    """Opens the ORs of all parties' bits; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        bits: This party's, shape (m,), each 0 or 1; m is public and equal at all parties.
        holders: The three computing parties, in the same order at all parties.
        label: A label of the job's statement, for m values.

    Returns:
        Shape (m,), each 0 or 1.

    Raises:
        ProtocolViolation: A party deviates.
        MalformedMessage: A party's message has another size.
        UndeclaredDisclosure: The statement does not name the label, or fewer values; nothing has left.
    """
    found = [np.empty(0, np.uint8)]
    for place, part in enumerate(or_blocks(len(bits))):
        lane, size = session.lane(f"block {place}"), part.stop - part.start
        gates = or_planes(len(session.parties))
        planes = pack_bits(bits[part][None])
        shape = (1, planes.shape[1])
        done = await checked(
            lane, secrets, shape, rest_of(planes), holders, [], lambda dealt, _: [any_of(dealt)], gates, what="bits"
        )
        share = None if done is None else done[0][0]
        ors = await opened(
            lane.lane("open"), share, label=label, holders=holders, number=size, width=1, to=session.parties
        )
        if ors is None:
            raise AssertionError("ORs are opened to all")
        found.append(unpack_bits(ors, size)[0])
    return np.concatenate(found)


def or_blocks(number: int) -> list[slice]:
    """The bits of each block."""
    return [slice(start, stop) for start, stop in pairwise([*range(0, number, BLOCK), number])]


@cache
def or_planes(parties: int) -> tuple[int, ...]:
    """Planes of ANDs, step by step, of so many parties' bits."""
    dealt = nothing(parties, 1)
    return tuple(planes_by_step(any_of(dealt), dealt[0]))
