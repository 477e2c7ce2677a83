"""Shared words times a bit of which two parties have a share each: by correlated transfers, for alignments.

With b of the one and c of the other party, x·(b ⊕ c) = z + (x − 2z)·c, where z = x·b.
    1  x·b      everybody who has a share of x lets b choose in a transfer correlated by this share; the sum is z
    2  ·(b ⊕ c) everybody who has a share of x − 2z lets c choose alike

Rounds: 4 for 2^20 words, in order. Bytes: those of one or two correlated transfers for each holder and word.
Adversary: semi-honest. Who chooses sees uniform words, and who gives uniform rows. Collusion: any n − 1 parties, of
    shares of n. Leakage: numbers of words.

Source: products on shares after Goldreich, Micali and Wigderson, STOC 1987, by Gilboa's transfers, CRYPTO 1999.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.two_party import InTurn
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session
from link.tasks import together

BLOCK: Final = 1 << 20  # words that are multiplied at a time, a multiple of eight
WORD: Final = np.uint32  # holds the greatest number of rows, and of positions


Bits = NDArray[np.uint8]


async def times_bit(
    session: Session,
    turns: Mapping[str, InTurn],
    holders: Sequence[str],
    bit_of: tuple[str, str],
    bits: Bits,
    words: Words,
) -> Words:
    """This party's shares of the words, times the bits; all holders and both parties of the bits call this.

    Args:
        session: A lane of its own.
        turns: Of this party's agreements with all others.
        holders: Who has a share of the words.
        bit_of: The one party, itself a holder, and the other, which may be none.
        bits: At these two, their shares, packed, shape (⌈n / 8⌉,); at all others something of this shape.
        words: Shares modulo 2^32, shape (n,); zeros at who is no holder. What is returned takes their place.

    Returns:
        Shape (n,), additive shares modulo 2^32 of all holders and the other.
    """
    for start in range(0, len(words), BLOCK):
        some = words[start : start + BLOCK]
        chosen = unpack_bits(bits[start // 8 : -(-(start + BLOCK) // 8)], len(some))
        some[:] = await _times(session.lane(f"from {start}"), turns, holders, bit_of, chosen, some)
    return words


async def _times(
    lane: Session,
    turns: Mapping[str, InTurn],
    holders: Sequence[str],
    bit_of: tuple[str, str],
    bits: Bits,
    words: Words,
) -> Words:
    product = np.zeros_like(words)
    for chooser in bit_of:
        givers = [holder for holder in holders if holder != chooser]
        rest = words - 2 * product  # of which the chooser's bit takes a multiple
        if lane.me == chooser:
            taken = await together(_take(lane, turns[giver], bits) for giver in givers)
            product += np.add.reduce([rest * bits, *taken], dtype=WORD)
        elif lane.me in givers:
            product -= await _give(lane, turns[chooser], rest)
    return product


async def _give(lane: Session, turn: InTurn, words: Words) -> Words:
    hop = lane.among(f"{turn.me} to {turn.peer}", turn.holders)
    return await send_correlated(hop, turn.peer, await turn.sending(hop), words)


async def _take(lane: Session, turn: InTurn, chosen: Bits) -> Words:
    hop = lane.among(f"{turn.peer} to {turn.me}", turn.holders)
    return await receive_correlated(hop, turn.peer, await turn.receiving(hop), chosen, WORD)
