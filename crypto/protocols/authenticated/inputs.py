"""Every party's numbers as authenticated bits of two computing parties, which cannot change those of others.

    1  deal    a party that does not compute shares its bits by XOR between the two. Each of the two also gets a mask,
               and of the other's share a key and the hash under it, of this share under the other's mask
    2  bind    the two authenticate what they know, their own numbers, and their shares of those of others
               (`correlation`)
    3  hash    each then tells the other its keys, and is told the hash of what the other has authenticated. It compares
               that with the one from the dealer, and with the codes: the hash is linear, so codes have one, too

A holder that authenticates another share than it was dealt does so before it knows the key, so the hashes differ but
with probability (b + 1) / 2^128 for shares of b blocks. Each mask serves once, so that a hash tells nothing under
whatever key it is asked for.

Rounds: 1 from dealers, 1, and 2. Bits: of a dealer's bit 1 to the second holder, and ⌈128/k⌉ in either direction
    between the two; as many of a bit of one of the two.
Adversary: malicious, one of the two, together with any dealers. An honest dealer's numbers are what it has dealt, or
    the job ends. A dealer's numbers are what two shares make, whatever it does.
Leakage: sizes.

Source: Wegman and Carter, JCSS 22(3), 1981 (codes by a hash under a mask); `polynomial_hash`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.polynomial_hash import SEED_BYTES, PolynomialHash
from crypto.primitives.randomness import KEY_BYTES, Randomness
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags
from crypto.primitives.shares.known_bits import KnownBits
from crypto.protocols.authenticated.correlation import correlated
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.replicated.crosschecks import contradiction
from link.session import Session
from protos.v1.authenticated_pb2 import DealtPlanes, DealtShare, HashKeys, ShareHashes

HASH_BYTES: Final = 16
MASK_BITS: Final = 8 * HASH_BYTES
_TAG_BITS: Final = 64


class Dealt(NamedTuple):
    """What a holder was dealt.

    Attributes:
        bits: Its share, shape (n,), and behind it the mask on its hash.
        key: For the hash of the other's share.
        hash: Of that, under the other's mask.
    """

    bits: Bits
    key: bytes
    hash: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Numbers:
    """What a holder has of all parties' numbers.

    Attributes:
        known: By computing party, of what it knows.
        shares: By party that does not compute.
    """

    known: Mapping[str, KnownBits]
    shares: Mapping[str, AuthenticatedBits]


@dataclass(frozen=True, slots=True, repr=False)
class Bound:
    """What a holder has of all parties' bits once both are bound to theirs.

    Attributes:
        known: By computing party, of the bits that it knows, in one plane.
        own: By dealer, what this one has authenticated of its share, of one plane.
        others: By dealer, what the other has.
        dealt: By dealer, what this one was dealt.
    """

    known: Mapping[str, KnownBits]
    own: Mapping[str, AuthenticatedBits]
    others: Mapping[str, AuthenticatedBits]
    dealt: Mapping[str, Dealt]

    def numbers(self, width: int) -> dict[str, AuthenticatedBits]:
        """Shares of the dealers' numbers of so many bits."""
        return {
            dealer: (share ^ self.others[dealer]).words(slice(0, -MASK_BITS)).reshaped(width)
            for dealer, share in self.own.items()
        }


async def deal(session: Session, bits: Bits, holders: tuple[str, str]) -> None:
    """Deals the numbers of a party that does not compute.

    Args:
        session: The lane to use, fresh for this call.
        bits: Its numbers, shape (width, number), each 0 or 1; the shape is public and equal at all parties.
        holders: The two computing parties, in the same order at all parties.
    """
    random, number = session.randomness("dealing"), bits.size
    seed = random.bytes(KEY_BYTES)
    first = _drawn(seed, number)
    shares = first, bits.reshape(-1) ^ first
    masks, keys = ([random.bytes(size) for _ in holders] for size in (HASH_BYTES, SEED_BYTES))
    for place, holder in enumerate(holders):
        hashed = _hash_of(shares[1 - place], masks[1 - place], keys[place])
        message = DealtShare(mask=masks[place], hash_key=keys[place], hash=hashed)
        if not place:
            message.seed = seed
        await session.send(holder, message)
    await session.send_array(holders[1], DealtPlanes, pack_bits(shares[1]))


async def taken(session: Session, pair: TwoParty, number: int) -> dict[str, Dealt]:
    """What a holder gets of the parties that do not compute, by dealer.

    Args:
        session: As of `deal`.
        pair: The two computing parties.
        number: Bits of each dealer's numbers.

    Raises:
        MalformedMessage: A dealer's message has another size.
    """

    def check(message: DealtShare) -> None:
        sizes = {"seed": KEY_BYTES * pair.is_first, "mask": HASH_BYTES, "hash_key": SEED_BYTES, "hash": HASH_BYTES}
        for field, size in sizes.items():
            if len(getattr(message, field)) != size:
                raise ValueError(f"its {field} has {len(getattr(message, field))} bytes, not {size}")

    found = {}
    for dealer in session.parties:
        if dealer in pair.holders:
            continue
        message = await session.recv(dealer, DealtShare, check)
        if pair.is_first:
            share = _drawn(message.seed, number)
        else:
            share = unpack_bits(await session.recv_array(dealer, DealtPlanes, np.uint8, (-(-number // 8),)), number)
        mask = unpack_bits(np.frombuffer(message.mask, np.uint8), MASK_BITS)
        found[dealer] = Dealt(np.concatenate([share, mask]), message.hash_key, message.hash)
    return found


async def bound(
    session: Session, pair: TwoParty, key: np.uint64, bits: Bits, of_peer: int, dealt: Mapping[str, Dealt]
) -> Bound:
    """Authenticates what the two know and what they were dealt; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        pair: The two computing parties.
        key: This holder's.
        bits: What it knows, shape (n,).
        of_peer: How many bits the other knows.
        dealt: From `taken`.

    Raises:
        MalformedMessage: The peer's rows have another size.
        ProtocolViolation: The peer's bits contradict each other.
    """
    choices = np.concatenate([bits, *(each.bits for each in dealt.values())])
    others = of_peer + len(choices) - len(bits)
    of = await correlated(session, pair, choices, of_peer=others)
    mine = KnownBits(choices[None, :], of.own, np.uint64(0))
    theirs = KnownBits(np.zeros((1, others), np.uint8), of.zero, key)
    known = {pair.me: mine.words(slice(0, len(bits))), pair.peer: theirs.words(slice(0, of_peer))}
    shares: dict[str, list[AuthenticatedBits]] = {}
    start = 0
    for dealer, each in dealt.items():
        stop = start + len(each.bits)
        shares[dealer] = [
            part.words(slice(skipped + start, skipped + stop)).shared(key, pair.me, pair.holders)
            for part, skipped in ((mine, len(bits)), (theirs, of_peer))
        ]
        start = stop
    own, of_others = ({dealer: each[place] for dealer, each in shares.items()} for place in range(2))
    return Bound(known, own, of_others, dealt)


async def hashes_compared(session: Session, pair: TwoParty, of: Bound, what: str) -> list[Tags]:
    """Compares what the peer has authenticated with what dealers say; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        pair: The two computing parties.
        of: From `bound`.
        what: Is dealt, for an error.

    Returns:
        What both holders have alike, if both have told hashes of what they have authenticated.

    Raises:
        MalformedMessage: The peer's message has another size.
        ProtocolViolation: The hashes differ: the peer has changed its share, or the dealer has dealt another hash.
    """
    if not of.dealt:
        return []
    number = len(of.dealt)
    await session.send(pair.peer, HashKeys(keys=b"".join(each.key for each in of.dealt.values())))

    def check_keys(message: HashKeys) -> None:
        if len(message.keys) != number * SEED_BYTES:
            raise ValueError(f"its keys have {len(message.keys)} bytes, not {number * SEED_BYTES}")

    def check_hashes(message: ShareHashes) -> None:
        if len(message.hashes) != number * HASH_BYTES:
            raise ValueError(f"its hashes have {len(message.hashes)} bytes, not {number * HASH_BYTES}")

    asked = (await session.recv(pair.peer, HashKeys, check_keys)).keys
    keys = [asked[at : at + SEED_BYTES] for at in range(0, len(asked), SEED_BYTES)]
    hashes = [
        _hash_of(each.bits[:-MASK_BITS], pack_bits(each.bits[-MASK_BITS:]).tobytes(), key)
        for each, key in zip(of.dealt.values(), keys, strict=True)
    ]
    await session.send(pair.peer, ShareHashes(hashes=b"".join(hashes)))
    told = (await session.recv(pair.peer, ShareHashes, check_hashes)).hashes
    alike: dict[str, list[Tags]] = {pair.me: [], pair.peer: []}
    for place, (dealer, dealt) in enumerate(of.dealt.items()):
        claimed = told[place * HASH_BYTES : (place + 1) * HASH_BYTES]
        if claimed != dealt.hash:
            raise contradiction(dealer, pair.peer, f"the {what} that {dealer} has dealt")
        alike[pair.me].append(await session.compute(_hashed_witness, of.own[dealer], keys[place], hashes[place]))
        alike[pair.peer].append(await session.compute(_hashed_witness, of.others[dealer], dealt.key, claimed))
    return [witness for holder in pair.holders for witness in alike[holder]]


def _drawn(seed: bytes, number: int) -> Bits:
    return unpack_bits(np.frombuffer(Randomness.from_key(seed).bytes(-(-number // 8)), np.uint8), number)


def _strings(bits: Bits) -> Bits:
    """Rows of bits as strings of whole blocks of the hash."""
    packed = pack_bits(bits)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % HASH_BYTES)))


def _hash_of(share: Bits, mask: bytes, key: bytes) -> bytes:
    strings = _strings(share[None, :])
    hashed = PolynomialHash(key, strings.shape[1], points=1).of_each(strings)[0]
    masked: NDArray[np.uint8] = hashed ^ np.frombuffer(mask, np.uint8)
    return masked.tobytes()


def _hashed_witness(share: AuthenticatedBits, key: bytes, claimed: bytes) -> Tags:
    """The witness of an opened hash: the same hash of each place of all tags, and the key where the hash has ones."""
    octets = share.tags[0].astype("<u8").view(np.uint8).reshape(-1, _TAG_BITS // 8)
    by_place = np.ascontiguousarray(np.unpackbits(octets, axis=1, bitorder="little").T)
    strings = _strings(by_place[:, :-MASK_BITS])
    hashed = PolynomialHash(key, strings.shape[1], points=1).of_each(strings)
    hashed ^= pack_bits(by_place[:, -MASK_BITS:])
    of_key = unpack_bits(np.array([share.key], "<u8").view(np.uint8), _TAG_BITS)
    hashed ^= of_key[:, None] * np.frombuffer(claimed, np.uint8)
    return np.ascontiguousarray(hashed).view(np.uint64)
