"""The OR of one private bit of each of n parties, left shared among all of them.

The OR is 0 exactly if all bits are 0, so the negations of the bits are multiplied, one party after the other. The first
one's negation is the product to begin with. When it is party i's turn, the parties before it hold shares of the product
so far. With each of them, j, it makes one transfer of bits, in which it chooses by its own negation x:

    j has r and r ⊕ z_j, z_j its share so far; i gets r ⊕ x·z_j.  The new shares are j's r, and the XOR of what i got.

Rounds: n, after `TwoParty.prepare` of every pair: the rows of all transfers in the first, then one for each party but
    the first, since only a party's own share waits for the parties before it.
Bytes: for each bit and each two parties one transfer, ⌈128/k⌉/8 from the later, and one bit from the earlier.
Output: shares of which any n − 1 are uniform, whatever the bits are.

Adversary: semi-honest. Collusion: any n − 1 parties learn nothing: of each transfer with an honest party they see rows
    that look uniform, or the one of two random bits that they chose.
Leakage: how many bits there are.

Source: Goldreich, Micali and Wigderson, "How to Play Any Mental Game", STOC 1987: products of shared bits by
oblivious transfer, here with one factor at a single party, so that one transfer serves each two parties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.two_party import TwoParty, beside
from crypto.protocols.transfers.ot_extension import fill_up, lowest_bits, receive_random, send_random
from link.session import Session
from link.tasks import together
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages

MOST_BITS: Final = 1 << 22  # at once, so that what is kept stays bounded

Packed = NDArray[np.uint8]


async def prepared(session: Session, pairs: Mapping[str, TwoParty]) -> None:
    """Agrees upon all that ORs need: of every two parties, the one that comes first in the job sends.

    Args:
        session: Of these parties.
        pairs: From `two_party.pairs_of`.
    """
    place = session.parties.index
    await together(pair.prepare(min(session.me, peer, key=place)) for peer, pair in pairs.items())


async def shared_or(session: Session, pairs: Mapping[str, TwoParty], bits: NDArray[np.uint8]) -> XorShare:
    """This party's share of the OR over all parties of each of some bits.

    Args:
        session: A lane of its own.
        pairs: From `two_party.pairs_of`.
        bits: This party's, shape (m,), each 0 or 1; m is public, at most `MOST_BITS`.

    Raises:
        MalformedMessage: A peer's messages have another size.
    """
    place = session.parties.index(session.me)
    before, after = session.parties[:place], session.parties[place + 1 :]
    lanes = {peer: session.lane(" and ".join(pairs[peer].holders)) for peer in session.others}
    negated = ~fill_up(bits)

    async def choose(peer: str) -> Packed:
        seeds = await pairs[peer].receiving(lanes[peer])
        batches = receive_random(lanes[peer], peer, seeds, negated, lowest_bits)  # -> 1
        return np.concatenate([chosen async for chosen in batches])

    async def offer(peer: str) -> tuple[Packed, Packed]:
        seeds = await pairs[peer].sending(lanes[peer])
        batches = send_random(lanes[peer], peer, seeds, len(negated) * 8, lowest_bits)  # <- 1
        pads = [(zero, zero ^ one) async for zero, one in batches]
        return np.concatenate([zero for zero, _ in pads]), np.concatenate([turned for _, turned in pads])

    async def product_with(peer: str, chosen: Packed) -> Packed:
        lane = session.lane(f"corrections {' and '.join(pairs[peer].holders)}")
        corrections = await lane.recv_array(peer, EncryptedMessages, np.uint8, negated.shape)  # <- 2, 3, …
        return chosen ^ (corrections & negated)

    choices, pads = await beside(together(map(choose, before)), together(map(offer, after)))
    share = negated
    if before:
        products = await together(product_with(*each) for each in zip(before, choices, strict=True))
        share = np.bitwise_xor.reduce(products)
    for peer, (zero, turned) in zip(after, pads, strict=True):
        # A lane that begins here counts the rounds of what the share waited for.
        lane = session.lane(f"corrections {' and '.join(pairs[peer].holders)}")
        await lane.send_array(peer, EncryptedMessages, turned ^ share)  # -> 2, 3, …
        share = zero
    planes = share[None, : -(-len(bits) // 8)]
    return ~XorShare(planes, len(bits), session.me, session.parties)
