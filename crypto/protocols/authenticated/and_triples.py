"""Authenticated AND triples between two, of whom one may deviate: leaky ones by half-gates, then buckets of these.

    1  bits      both authenticate random bits: [x], [y] and [r] for each leaky triple (`correlation`)
    2  gates     with K the other's key on x_p and M its own code, holder p sends G_p = H(K) ⊕ H(K ⊕ Δ_p) ⊕ t_p[y], and
                 takes S_p = H(K) ⊕ H(M) ⊕ x_p·(G of the other ⊕ t_p[y]). Then S_1 ⊕ S_2 = xy·(Δ_1 ⊕ Δ_2)
    3  products  Δ_1 ⊕ Δ_2 has the lowest bit 1, so the lowest bits of S_1 and S_2 share xy. The XOR of these with r is
                 opened, and [z] is [r] and that
    4  check     S_p ⊕ t_p[z] is the same at both, if and only if z = xy: they compare a hash of all. A holder that
                 deviates in step 2 passes if it guesses x_q of the other, half of the time, and then knows it
    5  buckets   a coin, tossed with the comparison, puts the leaky triples into buckets of B in random order. With the
                 opened y ⊕ y' two triples become one of x ⊕ x', y and z ⊕ z' ⊕ (y ⊕ y')·x', of which x is known only if
                 both x are

Of n buckets one is leaky throughout, and no guess was caught, with probability at most n / C(nB, B) ≤ n^(1 − B); so
B = ⌈40 / log2 n⌉ + 1 makes that 2^-40 at most.

Rounds: 6, and 3 for each further piece of 2^20 leaky triples, so that memory is bounded. Bytes: B·(3·⌈128/k⌉/8 + 8) a
    triple from each party, and some bits: `costs`.
Output: `Triples`, right if the openings are, which the caller settles.
Adversary: malicious, one of the two; in the random oracle and ideal cipher model.
Leakage: the number of triples.

Source: Wang, Ranellucci and Katz, "Authenticated Garbling and Efficient Maliciously Secure Two-Party Computation", CCS
2017, section 4 (leaky ANDs, buckets and their size); steps 2 to 4 in the form of Katz, Ranellucci, Rosulek and Wang,
"Optimizing Authenticated Garbling for Faster Secure Two-Party Computation", CRYPTO 2018, section 3.2. Buckets after
Nielsen et al., CRYPTO 2012.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final, Never

import numpy as np

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags
from crypto.protocols.authenticated.checks import Witnesses, compare, exchanged, open_masked
from crypto.protocols.authenticated.correlation import WORDS_AND_HASHES, Correlated, correlated, shared, tags_of
from crypto.protocols.comparison.two_party import TwoParty
from link.errors import InternalError
from link.session import Session
from link.tasks import together
from protos.v1.authenticated_pb2 import HalfGates

SECURITY_BITS: Final = 40
PIECE: Final = 1 << 20  # leaky triples at once
_LARGEST: Final = 16  # of buckets that are considered


class Triples:
    """A stock of a holder's shares of AND triples. What is taken is never given again; the stock is never copied."""

    __slots__ = ("_taken", "_x", "_y", "_z")

    def __init__(self, x: AuthenticatedBits, y: AuthenticatedBits, z: AuthenticatedBits) -> None:
        """Shares of one plane each."""
        self._x, self._y, self._z, self._taken = x, y, z, 0

    def take(self, width: int, number: int) -> tuple[AuthenticatedBits, AuthenticatedBits, AuthenticatedBits]:
        """The next triples, as planes of so many bits; both holders take the same shapes in the same order.

        Raises:
            InternalError: Fewer triples are left.
        """
        part = slice(self._taken, self._taken + width * number)
        if part.stop > self._x.number:
            raise InternalError(
                f"{width * number} triples were asked for where {self._x.number - self._taken} are left"
            )
        self._taken = part.stop
        x, y, z = (each.words(part).reshaped(width) for each in (self._x, self._y, self._z))
        return x, y, z

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("triples are never copied or pickled: a triple that serves twice shows what it masks")

    def __repr__(self) -> str:
        return f"<Triples, {self._x.number - self._taken} left>"


@dataclass(frozen=True, slots=True)
class Buckets:
    """How many triples are made, of so many leaky ones each."""

    number: int
    size: int

    @property
    def leaky(self) -> int:
        """Leaky triples altogether."""
        return self.number * self.size


def bucket_size(number: int) -> int:
    """B of n buckets, ⌈40 / log2 n⌉ + 1: the least with n^(B − 1) ≥ 2^40."""
    return next(size for size in count(2) if number ** (size - 1) >= 1 << SECURITY_BITS)


@cache
def buckets_for(number: int) -> Buckets:
    """Buckets for so many triples or more, with the fewest leaky ones: few are cheaper made in a larger number."""
    options = []
    for size in range(2, _LARGEST + 1):
        least = next(
            n for n in count(int(2 ** (SECURITY_BITS / (size - 1))) - 1) if n ** (size - 1) >= 1 << SECURITY_BITS
        )
        options.append(Buckets(max(number, least), size))
    return min(options, key=lambda each: each.leaky)


def pieces(leaky: int) -> list[int]:
    """Sizes of the pieces in which so many leaky triples are made."""
    return [min(PIECE, leaky - start) for start in range(0, leaky, PIECE)]


async def make_triples(session: Session, pair: TwoParty, key: np.uint64, witnesses: Witnesses, number: int) -> Triples:
    """A stock of at least `number` triples; both holders call this with the same number.

    Args:
        session: The lane to use, fresh for this call.
        pair: From `keyed_pair`.
        key: This holder's.
        witnesses: Takes those of what is opened; they are to be settled before anything that follows leaves.
        number: How many, public, one or more.

    Raises:
        MalformedMessage: The peer's messages have another size.
        ProtocolViolation: The peer deviates.
    """
    buckets = buckets_for(number)
    made, seen = [], hashlib.sha256()
    for place, size in enumerate(pieces(buckets.leaky)):
        *leaky, digest = await _leaky(session.lane(f"piece {place}"), pair, key, size)
        made.append(leaky)
        seen.update(digest)
    coin, _ = await compare(session.lane("check"), pair, seen.digest(), "AND triples")  # -> 4, 5  <- 4, 5
    order = await session.compute(Randomness.from_key(coin).permutation, buckets.leaky)
    x, y, z = (AuthenticatedBits.joined(each).words(order).reshaped(buckets.size) for each in zip(*made, strict=True))
    first, others = slice(0, 1), slice(1, None)
    of_first = AuthenticatedBits.stacked([y.bits(first)] * (buckets.size - 1))
    apart = await open_masked(session, pair, of_first ^ y.bits(others), witnesses)  # -> 6  <- 6
    return Triples(_summed(x), y.bits(first), _summed(z) ^ _summed(x.bits(others).times_public(apart)))


async def _leaky(
    session: Session, pair: TwoParty, key: np.uint64, number: int
) -> tuple[AuthenticatedBits, AuthenticatedBits, AuthenticatedBits, bytes]:
    """Leaky triples, of one plane each, and a hash of what both holders have to have alike."""
    drawn = np.frombuffer(session.randomness("bits").bytes(-(-3 * number // 8)), np.uint8)
    of_x, of_y, of_r = np.split(unpack_bits(drawn, 3 * number), 3)
    rows_of_x, rows_of_y, rows_of_r = await together(  # -> 1  <- 1
        [
            correlated(session.lane("x"), pair, of_x, WORDS_AND_HASHES),
            correlated(session.lane("y"), pair, of_y),
            correlated(session.lane("r"), pair, of_r),
        ]
    )
    x, y, r = (
        shared(pair, key, bits, tags_of(key, bits, rows), 1)
        for bits, rows in ((of_x, rows_of_x), (of_y, rows_of_y), (of_r, rows_of_r))
    )
    gates = await session.compute(_gates, rows_of_x, y.tags[0])
    await session.send_array(pair.peer, HalfGates, gates)  # -> 2  <- 2
    theirs = await session.recv_array(pair.peer, HalfGates, np.uint64, gates.shape)
    products = await session.compute(_products, rows_of_x, of_x, y.tags[0], theirs)
    lowest = (products & np.uint64(1)).astype(np.uint8)[None, :]
    z = r.plus_public(await exchanged(session, pair, lowest ^ r.values))  # -> 3  <- 3
    products ^= z.tags[0]
    return x, y, z, hashlib.sha256(products.data).digest()


def _gates(of_x: Correlated, tags: Tags) -> Tags:
    """G, shape (n,)."""
    found: Tags = of_x.zero[1] ^ of_x.one[0]
    found ^= tags
    return found


def _products(of_x: Correlated, x: Bits, tags: Tags, theirs: Tags) -> Tags:
    """S, shape (n,)."""
    found: Tags = theirs ^ tags
    found *= x
    found ^= of_x.zero[1]
    found ^= of_x.own[1]
    return found


def _summed(share: AuthenticatedBits) -> AuthenticatedBits:
    """The XOR of all planes."""
    found = share.bits(slice(0, 1))
    for place in range(1, share.width):
        found = found ^ share.bits(slice(place, place + 1))
    return found
