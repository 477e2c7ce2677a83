"""From short words to long ones: sums, modulo 2^64, of what two parties share modulo 2^w.

Let x₀ + x₁ = v + 2^w·o with 0 ≤ v < 2^(w−1). As the top bit of v is 0, the sum of the shares wraps around (o = 1)
exactly if a top bit of theirs is set: o = 1 − (1 − m₀)(1 − m₁). So

    v = x₀ + x₁ − 2^w + 2^w · (1 − m₀)(1 − m₁)    over the integers,

and the product of the two private bits is one correlated transfer.

Rounds: 2, and 2 more for every further `BLOCK` numbers.
Output: additive shares modulo 2^64 at both holders.
Bytes: ⌈128/k⌉/8 a number from the second holder, 8 from the first.
Adversary: semi-honest, private against either holder. Leakage: how many numbers, and their bound.

Source: Rathee et al., "SiRnn: A Math Library for Secure RNN Inference", IEEE S&P 2021, section III-A.2 (the wrap of
shares of a number whose top bit is known).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session

BLOCK: Final = 1 << 21  # transfers: what a block keeps stays below 100 MB


async def lift_sums(session: Session, parties: TwoParty, words: Words) -> AdditiveShare:
    """Shares modulo 2^64 of sums of numbers that are shared modulo 2^w; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        words: This party's shares, shape (sums, numbers in each), unsigned words of w bits; shape and type are public.
            Every number lies in 0 … 2^(w−1) − 1, else its sum is wrong.

    Returns:
        One number a row.

    Raises:
        MalformedMessage: The peer's messages have another size.
    """
    each = words.shape[1]
    bits = np.uint64(8 * words.itemsize)
    total = words.sum(axis=1, dtype=np.uint64)
    if parties.is_first:
        total -= np.uint64(each) << bits
    if words.size:
        total += await _common_zeros(session, parties, words) << bits
    return AdditiveShare(total, parties.me, parties.holders)


def blocks(number: int, each: int) -> list[slice]:
    """The sums of each block of transfers; at least one sum a block."""
    step = max(1, BLOCK // each)
    return [slice(start, min(start + step, number)) for start in range(0, number, step)]


async def _common_zeros(session: Session, parties: TwoParty, words: Words) -> NDArray[np.uint64]:
    """This party's part of how many numbers a row have their top bit 0 in both parties' shares."""
    number, each = words.shape
    top = words.dtype.type(1 << (8 * words.itemsize - 1))
    counts = np.zeros(number, np.uint64)
    if parties.is_first:
        sender = await parties.sending(session)
        for block in blocks(number, each):
            correlations = (words[block].reshape(-1) < top).astype(np.uint64)
            shares = await send_correlated(session, parties.peer, sender, correlations)
            counts[block] -= shares.reshape(-1, each).sum(axis=1, dtype=np.uint64)
    else:
        receiver = await parties.receiving(session)
        for block in blocks(number, each):
            choices = (words[block].reshape(-1) < top).astype(np.uint8)
            shares = await receive_correlated(session, parties.peer, receiver, choices, np.uint64)
            counts[block] += shares.reshape(-1, each).sum(axis=1, dtype=np.uint64)
    return counts
