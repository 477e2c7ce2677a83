"""Authenticated AND triples between two, of whom one may deviate: leaky ones by half-gates, then buckets of these.

    1  bits      both authenticate random bits: [x], [y] and [r] for each leaky triple (`correlation`)
    2  gates     with K the other's key on x_p and M its own code, holder p sends G_p = H(K) ⊕ H(K ⊕ Δ_p) ⊕ t_p[y], and
                 takes S_p = H(K) ⊕ H(M) ⊕ x_p·(G of the other ⊕ t_p[y]), all of 48 bits. Then S_1 ⊕ S_2 is
                 xy·(Δ_1 ⊕ Δ_2)
    3  products  Δ_1 ⊕ Δ_2 has the lowest bit 1, so the lowest bits of S_1 and S_2 share xy. The XOR of these with r is
                 opened, and [z] is [r] and that
    4  check     S_p ⊕ t_p[z] is the same at both, if and only if z = xy: they compare a hash of all. A holder that
                 deviates in step 2 passes if it guesses x_q of the other, half of the time, and then knows it
    5  buckets   a coin, tossed with the comparison, puts the leaky triples into buckets of B in random order. With the
                 opened y ⊕ y' two triples become one of x ⊕ x', y and z ⊕ z' ⊕ (y ⊕ y')·x', of which x is known only if
                 both x are

Of n buckets one is leaky throughout, and none of t guesses was caught, with probability at most 2^-t · n · C(t, B) /
C(nB, B). B is the least with which no t makes that more than 2^-40. A z that is wrong passes the comparison with 2^-47,
that of a guess of the other's Δ: the lowest bit is public.

Rounds: 6, and 3 for each further piece of 2^20 leaky triples, so that memory is bounded. Bytes: B·(3·⌈128/k⌉/8 + 6) a
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
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Final, Never

import numpy as np
from numpy.typing import NDArray

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
GATE_BYTES: Final = 6
_GATE_BITS: Final = np.uint64((1 << 8 * GATE_BYTES) - 1)
_LARGEST: Final = 16  # of buckets that are considered

Gates = NDArray[np.uint8]


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


def is_enough(number: int, size: int) -> bool:
    """Whether so many buckets of this size are all leaky in one of them with probability 2^-40 at most."""
    # With t guesses 2^-t·C(t, B) is largest where one more guess would double what it can fill.
    most = 2 * size - 1
    return number * comb(most, size) << SECURITY_BITS <= comb(number * size, size) << most


@cache
def buckets_for(number: int) -> Buckets:
    """Buckets for so many triples or more, with the fewest leaky ones: few are cheaper made in a larger number."""
    options = [Buckets(max(number, _least(size)), size) for size in range(2, _LARGEST + 1)]
    return min(options, key=lambda each: each.leaky)


@cache
def _least(size: int) -> int:
    """How few buckets of this size are enough."""
    return bisect_left(range(1 << SECURITY_BITS), True, lo=1, key=lambda number: is_enough(number, size))


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
    theirs = await session.recv_array(pair.peer, HalfGates, np.uint8, gates.shape)
    products = await session.compute(_products, rows_of_x, of_x, y.tags[0], theirs)
    lowest = (products & np.uint64(1)).astype(np.uint8)[None, :]
    z = r.plus_public(await exchanged(session, pair, lowest ^ r.values))  # -> 3  <- 3
    products ^= z.tags[0] & _GATE_BITS
    return x, y, z, hashlib.sha256(products.data).digest()


def _gates(of_x: Correlated, tags: Tags) -> Gates:
    """G, shape (n, 6)."""
    found: Tags = of_x.zero[1] ^ of_x.one[0]
    found ^= tags
    return np.ascontiguousarray(found.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)[:, :GATE_BYTES])


def _products(of_x: Correlated, x: Bits, tags: Tags, theirs: Gates) -> Tags:
    """S, shape (n,)."""
    octets = np.zeros((len(theirs), 8), np.uint8)
    octets[:, :GATE_BYTES] = theirs
    found: Tags = octets.view("<u8")[:, 0].astype(np.uint64) ^ tags
    found *= x
    found ^= of_x.zero[1]
    found ^= of_x.own[1]
    found &= _GATE_BITS
    return found


def _summed(share: AuthenticatedBits) -> AuthenticatedBits:
    """The XOR of all planes."""
    found = share.bits(slice(0, 1))
    for place in range(1, share.width):
        found = found ^ share.bits(slice(place, place + 1))
    return found
