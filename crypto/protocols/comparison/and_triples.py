"""AND triples from random oblivious transfers: random shared bits a, b and c = a ∧ b, each of which serves one AND.

Both parties are sender in one extension and receiver in the other. A party's a is the XOR of both random bits that it
sends, its b are its choices as a receiver, and

    a₀b₁:  the first holder's random bit u and the second's chosen bit v are its shares, since v = u ⊕ b₁·a₀,
    c_p = a_p·b_p ⊕ u_p ⊕ v_p.

Rounds: 1 for up to `BLOCK` triples, one more per further block; blocks keep memory bounded, since no party runs further
ahead than a block.
Bytes: ⌈128/k⌉/8 a triple from each party; a stock of n triples takes 3·n/8 bytes of memory.
Adversary: semi-honest, as in `ot_extension`. Leakage: the number of triples.

Source: Asharov, Lindell, Schneider and Zohner, CCS 2013, section 5.1 (multiplication triples from random OT); triples
after Beaver, CRYPTO 1991.
"""

from __future__ import annotations

from typing import Final, Never

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.ot_extension import BATCH, batches, lowest_bits, receive_random, send_random
from link.errors import InternalError
from link.session import Session
from link.tasks import together

BLOCK: Final = 32 * BATCH

Packed = NDArray[np.uint8]


class Triples:
    """A stock of one party's shares of AND triples. What is taken is never given again; the stock is never copied.

    Attributes:
        holders: Both computing parties.
    """

    __slots__ = ("_a", "_b", "_c", "_taken", "holders")

    def __init__(self, a: Packed, b: Packed, c: Packed, holders: tuple[str, str]) -> None:
        self._a, self._b, self._c, self.holders = a, b, c, holders
        self._taken = 0

    @property
    def left(self) -> int:
        """How many triples are left."""
        return (len(self._a) - self._taken) * 8

    def take(self, shape: tuple[int, int]) -> tuple[Packed, Packed, Packed]:
        """The next triples: this party's shares of a, b and c.

        Both parties take the same shapes in the same order.

        Args:
            shape: Planes and bytes a plane; eight triples a byte.

        Returns:
            Three arrays of this shape, packed.

        Raises:
            InternalError: Fewer triples are left.
        """
        start, stop = self._taken, self._taken + shape[0] * shape[1]
        if stop > len(self._a):
            raise InternalError(f"{(stop - start) * 8} triples were asked for where {self.left} are left")
        self._taken = stop
        a, b, c = (part[start:stop].reshape(shape) for part in (self._a, self._b, self._c))
        return a, b, c

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("triples are never copied or pickled: a triple that serves twice shows what it masks")

    def __repr__(self) -> str:
        return f"<Triples, {self.left} left>"


async def make_triples(session: Session, parties: TwoParty, number: int) -> Triples:
    """A stock of at least `number` triples; both parties call this with the same number.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        number: How many, public.

    Raises:
        MalformedMessage: The peer's messages have another size.
    """
    size = sum(batches(number)) // 8
    a, u, v = (np.empty(size, np.uint8) for _ in range(3))
    b = np.frombuffer(session.randomness("choices").bytes(size), np.uint8)
    sending, receiving = session.lane(f"from {parties.me}"), session.lane(f"from {parties.peer}")
    sender, receiver = await parties.both(sending, receiving)

    async def send(block: slice) -> None:
        done = block.start
        async for zero, one in send_random(sending, parties.peer, sender, (block.stop - done) * 8, lowest_bits):
            some = slice(done, done + len(zero))
            a[some], u[some] = zero ^ one, zero
            done = some.stop

    async def receive(block: slice) -> None:
        done = block.start
        async for chosen in receive_random(receiving, parties.peer, receiver, b[block], lowest_bits):
            v[done : done + len(chosen)] = chosen
            done += len(chosen)

    for start in range(0, size, BLOCK // 8):
        block = slice(start, min(start + BLOCK // 8, size))
        await together([send(block), receive(block)])  # -> 1  <- 1
    v ^= a & b
    v ^= u
    return Triples(a, b, v, parties.holders)
