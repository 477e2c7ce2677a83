"""From shared bits to additive shares: b = b₀ ⊕ b₁ is the integer b₀ + b₁ − 2·b₀·b₁.

The product is one correlated oblivious transfer a bit: the first holder's correlation is −2·b₀, the second's choice b₁.

Rounds: 2, beside those of `TwoParty`. Bytes: 16/k a bit from the second holder, 8 from the first.
Output: additive shares modulo 2^64 at both holders.
Adversary: semi-honest, private against either holder. Leakage: how many bits.

Source: Demmler, Schneider and Zohner, "ABY – A Framework for Efficient Mixed-Protocol Secure Two-Party Computation",
NDSS 2015, section III-E (B2A by correlated OT).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.shared_bits import check_two_party
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session

BLOCK: Final = 1 << 20  # bits


async def to_additive(session: Session, parties: TwoParty, bits: XorShare) -> AdditiveShare:
    """Additive shares of shared words of up to 64 bits; both holders call this with their shares of the same words.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        bits: Of both parties' holders.

    Returns:
        The words as integers modulo 2^64, one each.

    Raises:
        TypeError: The shares are of other holders.
        MalformedMessage: The peer's messages have another size.
    """
    check_two_party(parties, bits)
    if bits.width > 64:
        raise ValueError(f"words of {bits.width} bits are no integers modulo 2^64")
    own = unpack_bits(bits.planes, bits.number).reshape(-1)
    values = own.astype(np.uint64)
    if parties.is_first:
        sender = await parties.sending(session)
        for start in range(0, len(own), BLOCK):
            some = slice(start, start + BLOCK)
            correlations = values[some] * np.uint64(2**64 - 2)
            values[some] -= await send_correlated(session, parties.peer, sender, correlations)
    else:
        receiver = await parties.receiving(session)
        for start in range(0, len(own), BLOCK):
            some = slice(start, start + BLOCK)
            values[some] += await receive_correlated(session, parties.peer, receiver, own[some], np.uint64)
    weights = np.uint64(1) << np.arange(bits.width, dtype=np.uint64)
    total = (values.reshape(bits.width, bits.number) * weights[:, None]).sum(axis=0, dtype=np.uint64)
    return AdditiveShare(total, parties.me, parties.holders)
