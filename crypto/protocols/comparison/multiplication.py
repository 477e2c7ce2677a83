"""Multiplication by correlated oblivious transfer: what two parties hold, times each other, as additive shares.

For x of one party and y of the other, bit i of y chooses in a transfer correlated by x·2^i: the shares' sum over the
bits is x·y. Modulo 2^w bit i needs only w − i bits of x, so that high bits travel in short words.

    `multiply`: the product of two shared vectors, element by element: x₀y₀ + x₁y₁ locally, x₀y₁ and x₁y₀ by transfers.
    `dot_product`: Σ x_j·y_j over private bits, one transfer each.

Rounds: 2, beside those of `TwoParty`; batches that memory bounds take 2 more per block.
Output: additive shares modulo 2^64 at both holders.
Bytes: `multiply` 64·16/k + 344 an element from each party; `dot_product` 16/k a bit from the second holder, 8 from the
    first.
Adversary: semi-honest, private against either holder. Leakage: sizes.

Source: Gilboa, "Two Party RSA Key Generation", CRYPTO 1999, section 4.1; Asharov, Lindell, Schneider and Zohner, CCS
2013, section 5, for the correlated transfers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.shared_bits import check_two_party
from crypto.protocols.comparison.two_party import TwoParty, beside
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session
from link.tasks import together

PRODUCT_BLOCK: Final = 1 << 15  # elements: 2^21 transfers
DOT_BLOCK: Final = 1 << 22  # transfers: what a block keeps stays below 100 MB

# Bits of a factor that share a word, from the first to before the second: the shortest that holds 64 − first bits.
_RUNS: Final = ((0, 32, np.uint64), (32, 48, np.uint32), (48, 56, np.uint16), (56, 64, np.uint8))

Values = NDArray[np.uint64]
Bits = NDArray[np.bool_]


async def multiply(session: Session, parties: TwoParty, x: AdditiveShare, y: AdditiveShare) -> AdditiveShare:
    """The share of x·y modulo 2^64, element by element; both holders call this with their shares of the same vectors.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        x: Of both parties' holders.
        y: As long as x.

    Raises:
        TypeError: The shares are of other holders, or in shorter words.
        MalformedMessage: The peer's messages have another size.
    """
    check_two_party(parties, x, y)
    if any(factor.word is not np.uint64 for factor in (x, y)):
        raise TypeError("products are taken modulo 2^64, of shares in words of 64 bits")
    if x.size != y.size:
        raise ValueError(f"vectors of length {x.size} and {y.size} are not multiplied")
    sending, receiving = session.lane(f"from {parties.me}"), session.lane(f"from {parties.peer}")
    product = x.values * y.values
    for start in range(0, x.size, PRODUCT_BLOCK):
        block = slice(start, start + PRODUCT_BLOCK)
        of_x, of_y = await beside(
            send_factors(sending, parties, x.values[block]), receive_factors(receiving, parties, y.values[block])
        )
        product[block] += of_x + of_y
    return AdditiveShare(product, parties.me, parties.holders)


async def send_factors(session: Session, parties: TwoParty, factors: Values) -> Values:
    """This party's part of the products of its own numbers x with the other's y.

    Args:
        session: The lane to use.
        parties: This party's half of the agreement with the other.
        factors: x, shape (n,), n public.

    Returns:
        Its shares of x·y modulo 2^64, shape (n,).
    """

    async def part(first: int, stop: int, word: type[np.unsignedinteger[Any]]) -> Values:
        lane = session.lane(f"bit {first}")
        repeated = np.tile(factors.astype(word), stop - first)
        sender = await parties.sending(lane)
        return _weighted(await send_correlated(lane, parties.peer, sender, repeated), first, stop)

    total: Values = np.sum(await together(part(*run) for run in _RUNS), axis=0, dtype=np.uint64)
    return np.negative(total)


async def receive_factors(session: Session, parties: TwoParty, factors: Values) -> Values:
    """This party's part of the products of its own numbers y with the x that the other sends; as `send_factors`."""

    async def part(first: int, stop: int, word: type[np.unsignedinteger[Any]]) -> Values:
        lane = session.lane(f"bit {first}")
        positions = np.arange(first, stop, dtype=np.uint64)[:, None]
        choices = ((factors >> positions) & np.uint64(1)).astype(np.uint8).reshape(-1)
        receiver = await parties.receiving(lane)
        return _weighted(await receive_correlated(lane, parties.peer, receiver, choices, word), first, stop)

    total: Values = np.sum(await together(part(*run) for run in _RUNS), axis=0, dtype=np.uint64)
    return total


async def dot_product(session: Session, parties: TwoParty, bits: Bits) -> AdditiveShare:
    """The share of how many positions are set in both holders' private vectors.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        bits: This party's own vector, shape (n,); n is public and equal at both.

    Returns:
        One number.

    Raises:
        MalformedMessage: The peer's vector has another length.
    """
    total = np.zeros(1, np.uint64)
    if parties.is_first:
        sender = await parties.sending(session)
        for start in range(0, len(bits), DOT_BLOCK):
            words = bits[start : start + DOT_BLOCK].astype(np.uint64)
            total -= np.sum(await send_correlated(session, parties.peer, sender, words), dtype=np.uint64)
    else:
        receiver = await parties.receiving(session)
        for start in range(0, len(bits), DOT_BLOCK):
            choices = bits[start : start + DOT_BLOCK].astype(np.uint8)
            shares = await receive_correlated(session, parties.peer, receiver, choices, np.uint64)
            total += np.sum(shares, dtype=np.uint64)
    return AdditiveShare(total, parties.me, parties.holders)


def _weighted(words: Words, first: int, stop: int) -> Values:
    """Σ 2^i · words over bits i of a run; what a short word lacks vanishes modulo 2^64."""
    rows = words.reshape(stop - first, -1).astype(np.uint64)
    rows <<= np.arange(first, stop, dtype=np.uint64)[:, None]
    total: Values = rows.sum(axis=0, dtype=np.uint64)
    return total
