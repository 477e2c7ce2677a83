"""Every party deals replicated shares of its numbers, bit by bit, to three computing parties.

    1  deal      a dealer draws two of three components from keys, and takes the XOR of both off its bits for the third;
                 it sends each holder the keys or the bits of the two components that this one holds
    2  compare   the two holders of each component send each other digests of what every dealer gave them (`compared`)

Numbers dealt as so many bits are numbers from 0 to 2^width − 1 whatever a dealer does: there is no −1.

Rounds: 1 each; nothing that depends on what was dealt may be opened before `compared` has returned. ANDs may be taken
    before, as all that they send is under masks.
Bytes: per number its width in bits, from a party that computes to one of the two others, from one that does not to two.

Output: replicated shares of each dealer's numbers, at the three.
Adversary: malicious, one of the three holders together with any dealers. A component that lies at two honest holders is
    one and the same; one that a corrupt party holds is what its honest holder says.
Leakage: none; a holder alone has two components, which are uniform. A digest goes to who holds the component anyway.

Source: Furukawa, Lindell, Nof and Weinstein, EUROCRYPT 2017, section 2.2 and Protocol 2.6, in which dealers share by
replicated secret sharing and holders compare.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from crypto.primitives.randomness import KEY_BYTES, Randomness
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, contradiction, digest, neighbours
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.verified_pb2 import DealtBits, DealtDigests, DealtKeys

_PURPOSE: Final = "dealing"


def sent_in_full(parties: tuple[str, ...], holders: Holders3, dealer: str) -> int:
    """The component of a dealer's numbers that no key gives: one of its own, where it has any."""
    return holders.index(dealer) if dealer in holders else parties.index(dealer) % 3


async def dealt(session: Session, planes: Planes, holders: Holders3) -> list[ReplicatedBits] | None:
    """Deals this party's numbers, and at a holder takes what all parties deal; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        planes: Shape (width, bytes): this party's numbers, bit by bit; the shape is public and equal at all parties.
        holders: The three computing parties, in the same order at all parties.

    Returns:
        Shares of each party's numbers, in the order of the job; None to a party that does not compute.

    Raises:
        MalformedMessage: A dealer's message has another size.
    """
    random, full = session.randomness(_PURPOSE), sent_in_full(session.parties, holders, session.me)
    keys = [random.bytes(KEY_BYTES) for _ in holders]
    parts = [_expanded(key, planes) for key in keys]
    parts[full] = planes ^ parts[full - 1] ^ parts[full - 2]
    for place, holder in enumerate(holders):
        held = (place, (place + 1) % 3)
        if holder != session.me:
            await session.send(holder, DealtKeys(keys=b"".join(keys[part] for part in held if part != full)))
            if full in held:
                await session.send_array(holder, DealtBits, parts[full])
    if session.me not in holders:
        return None
    place = holders.index(session.me)
    found = []
    for dealer in session.parties:
        if dealer == session.me:
            found.append(ReplicatedBits(parts[place], parts[(place + 1) % 3], session.me, holders))
        else:
            found.append(await _taken(session, planes, holders, dealer))
    return found


async def compared(session: Session, shares: list[ReplicatedBits], holders: Holders3) -> None:
    """Compares what all parties have dealt; the three holders call this.

    Args:
        session: The lane to use, fresh for this call.
        shares: From `dealt`.
        holders: As given to it.

    Raises:
        ProtocolViolation: A dealer gave two holders different bits, or a holder does not say what it was given. It
            names who it was where this holder can know, else both who contradict each other.
        MalformedMessage: A holder's message has another size.
    """
    before, after = neighbours(session, holders)
    own = [digest(share.own) for share in shares]
    following = [digest(share.following) for share in shares]
    await session.send(before, DealtDigests(digests=b"".join(own)))
    await session.send(after, DealtDigests(digests=b"".join(following)))

    def check(message: DealtDigests) -> None:
        if len(message.digests) != len(shares) * DIGEST_BYTES:
            raise ValueError(f"{len(shares)} digests have {len(shares) * DIGEST_BYTES} bytes")

    for peer, known in ((before, own), (after, following)):
        told = (await session.recv(peer, DealtDigests, check)).digests
        for place, dealer in enumerate(session.parties):
            if told[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES] != known[place]:
                if dealer in (peer, session.me):  # this party knows what it was dealt, or what it has dealt
                    raise ProtocolViolation(
                        f"{peer} does not stand by the counts that {dealer} has dealt; its node must be checked",
                        party=peer,
                    )
                raise contradiction(dealer, peer, f"the counts that {dealer} has dealt")


async def _taken(session: Session, like: Planes, holders: Holders3, dealer: str) -> ReplicatedBits:
    place, full = holders.index(session.me), sent_in_full(session.parties, holders, dealer)
    held = (place, (place + 1) % 3)
    size = KEY_BYTES * sum(part != full for part in held)

    def check(message: DealtKeys) -> None:
        if len(message.keys) != size:
            raise ValueError(f"its keys have {size} bytes, not {len(message.keys)}")

    keys, parts = (await session.recv(dealer, DealtKeys, check)).keys, []
    for part in held:
        if part == full:
            parts.append(await session.recv_array(dealer, DealtBits, np.uint8, like.shape))
        else:
            parts.append(_expanded(keys[:KEY_BYTES], like))
            keys = keys[KEY_BYTES:]
    own, following = parts
    return ReplicatedBits(own, following, session.me, holders)


def _expanded(key: bytes, like: Planes) -> Planes:
    return random_matrix(Randomness.from_key(key), (like.shape[0], like.shape[1]), np.uint8)
