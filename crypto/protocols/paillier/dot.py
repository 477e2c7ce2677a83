"""Dot products of two parties' private columns of bits by Paillier encryption: in how many rows both of a pair are set.

For a list of pairs (i, j) of columns, A of the key's holder and B of the evaluator, the result is Σ_t A[t, i]·B[t, j].

    1. The key's holder packs its columns' bits into plaintexts, several rows to one where they fit (`slots`), and
       sends their encryptions, from a pool made beforehand.
    2. The evaluator, for each of its columns, multiplies the ciphertexts of the rows where the column is set:
       encryptions of all products with that column; where a plaintext holds ρ rows, of ρ partial sums, one for each
       place in it. It adds a random mask over the *whole* plaintext, and makes the ciphertext fresh with a uniform
       n-th residue. The key's holder decrypts.
    3. What the holder has and the evaluator's masks, negated, are shares of the products, once each has added up the
       ρ places.

What becomes of the shares:
    "opened"   the evaluator opens the masks of the products asked for to the key's holder, by `Session.open`;
               products that were not asked for stay masked.
    "doubled"  (`kept`) they stay, modulo 2^k, as shares of 2·product + β with an unknown bit β, in slots a third as
               wide: for comparison with a threshold, or to be made exact by two correlated transfers each (`exact`).

Rounds: 2; one more for every 32 MB of encrypted rows beyond the first 64; one more to make doubled shares exact.
Output: as above.
Bytes, for keys of b bits, N rows, ρ rows to a plaintext and g groups of columns: b/4 · g · ⌈N/ρ⌉ from the key's holder,
    b/4 · g·ρ for each of the evaluator's columns from the evaluator, 8 more a pair if it opens. ρ is what takes the
    least work of those that fit. To make shares exact 2·⌈128/κ⌉/8 more a pair from the evaluator, with κ
    in the extension of transfers, and 16 from the key's holder.

Adversary: semi-honest. The evaluator sees ciphertexts, private by the decisional composite residuosity assumption and
    what the pool's source assumes besides. The key's holder sees uniform n-th residues and masked plaintexts: these
    are within ρ·2^-40 of a distribution without the products for each reply, or ("each" in `slots`) 2^-40 a slot. A
    key's holder with a malformed modulus, or who sends other plaintexts than bits, learns more than products of bits;
    an evaluator that deviates can spoil products, or learn from the end of a job whether an altered one was refused.
Collusion: two parties; the two together have everything.
Leakage: the number of rows and the pairs, which are public. The *time* in which the evaluator answers grows with the
    number of ones in its columns, and of its different rows.

Source: Goethals, Laur, Lipmaa and Mielikäinen, "On Private Scalar Product Computation for Privacy-Preserving Data
Mining", ICISC 2004, protocol 3; Paillier, EUROCRYPT 1999; Damgård, Jurik and Nielsen 2010. `exact`: the wrap of shares
of a number whose top bit is known is from Rathee et al., "SiRnn", IEEE S&P 2021, section III-A.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.columns import Columns, check_columns
from crypto.primitives.paillier.keys import DEFAULT_BITS, PrivateKey
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.slots import Words
from crypto.primitives.paillier.workers import Workers
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import Thresholds, at_least, width_for
from crypto.protocols.comparison.two_party import TwoParty, beside
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.rows import (
    decrypt_replies,
    multiply_rows,
    receive_key,
    receive_rows,
    send_replies,
    send_rows,
    uniform_zeros,
)
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.disclosure import Declared
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.paillier_pb2 import PaillierKey

EXACT: Final = "exact"  # the lane on which doubled shares are made exact, below that of their making


def declared(label: str, holder: str, maximum: int, *, when: str) -> Declared:
    """The statement's line for products opened under `label` to the key's holder."""
    return Declared(label, frozenset([holder]), "rows in which both columns of a pair are set", maximum, when)


# -- opened to the key's holder ----------------------------------------------------------------------------------------
async def hold_opened(
    session: Session,
    evaluator: str,
    key: PrivateKey,
    pool: ZeroPool,
    columns: Columns,
    rows: int,
    pairs: Pairs,
    *,
    label: str,
    workers: Workers | None = None,
) -> Words:
    """The key holder's part: the products.

    Args:
        session: The lane to use, fresh for this call.
        evaluator: The other party.
        key: This party's key.
        pool: Encryptions of zero under it; what is missing is made on the spot.
        columns: This party's own.
        rows: Length of the columns, public.
        pairs: A column of the key's holder and one of the evaluator each, at least one; public.
        label: A label of the job's statement, for at least one value a pair.
        workers: Where encryptions of zero are made; the session's own by default.

    Returns:
        One number a pair, in their order.

    Raises:
        ValueError: A pair names a column that this party does not have, the columns are too short, or there are more
            rows than slots can count.
        MalformedMessage: The evaluator's reply or masks are not as they must be.
    """
    arrangement = Arrangement.of(rows, pairs, key.public.bits)
    check_columns(columns, rows, arrangement.used[0])
    if pool.key != key.public:
        raise TypeError("encryptions of zero are taken from a pool under the key itself")
    await session.send(evaluator, PaillierKey(modulus=key.public.to_bytes()))  # -> 1
    await send_rows(session, evaluator, arrangement, key, pool, columns, workers or session)  # -> 1
    replies = await decrypt_replies(session, evaluator, key, arrangement.replies)  # <- 2
    masks = await session.receive_opened(evaluator, label, np.uint64, (len(pairs),))  # <- 2
    products = arrangement.without_masks(arrangement.layout.unpack(replies), masks)
    if products.max() > rows:
        raise MalformedMessage(f"{evaluator} opened masks that are not those of its products", party=evaluator)
    return products


async def evaluate_opened(
    session: Session,
    holder: str,
    columns: Columns,
    rows: int,
    pairs: Pairs,
    *,
    label: str,
    key_bits: int = DEFAULT_BITS,
    workers: Workers | None = None,
) -> None:
    """The evaluator's part, which learns nothing.

    Args:
        session: The lane to use, fresh for this call.
        holder: The key's holder.
        columns: This party's own.
        rows: As at the holder.
        pairs: As at the holder.
        label: As at the holder.
        key_bits: Size of the holder's key, public.
        workers: Where ciphertexts are multiplied: several processes use several cores; the session's own by default.

    Raises:
        ValueError: As for `hold_opened`.
        MalformedMessage: The holder's key is none of that size, or its rows are no ciphertexts under it.
        UndeclaredDisclosure: The statement does not allow the opening; no masks have left.
    """
    arrangement = Arrangement.of(rows, pairs, key_bits)
    check_columns(columns, rows, arrangement.used[1])
    key = await receive_key(session, holder, arrangement.ciphertext_bytes * 4)  # <- 1
    encrypted = receive_rows(session, holder, arrangement)  # <- 1
    products, zeros = await beside(
        multiply_rows(session, holder, arrangement, columns, key, encrypted, workers or session),
        uniform_zeros(session, key, arrangement.replies),
    )
    masks, slots = arrangement.layout.masks(arrangement.sums, session.randomness("masks"))
    await send_replies(session, holder, key, products, zeros, masks)  # -> 2
    await session.open(label, arrangement.of_pairs(slots), [holder])  # -> 2


# -- left as shares, in narrow slots: for comparison, or made exact ----------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class DoubledShare:
    """A share of 2·product + β modulo 2^width, one a pair; it is compared or made exact, never opened.

    Attributes:
        rows: No product exceeds it.
        share: As it is.
    """

    rows: int
    share: AdditiveShare

    async def reach(self, session: Session, parties: TwoParty, threshold: Thresholds) -> XorShare:
        """Shares of [product ≥ threshold], as 2·product + β ≥ 2·threshold says the same; both holders call this.

        Args:
            session: The lane to use, fresh for this call.
            parties: This party's half of the agreement between the key's holder and the evaluator, in this order.
            threshold: Public: one number for all, or a uint64 array of one for each pair, from 0 to `rows`.

        Returns:
            One bit a pair.
        """
        doubled = 2 * threshold if isinstance(threshold, int) else threshold * np.uint64(2)
        return await at_least(session, parties, self.share, doubled, width_for(2 * self.rows + 1))

    async def exact(self, session: Session, parties: TwoParty) -> AdditiveShare:
        """Shares of the products modulo 2^64; both holders call this.

        Of the shares x₀ + x₁ = 2·product + β modulo 2^k, a number below 2^(k−1), let b be the lowest and m the highest
        bits. Then β = b₀ ⊕ b₁, and the sum wraps around exactly if m₀ or m₁ is set. So over the integers

            product = ⌊x₀/2⌋ + ⌊x₁/2⌋ + b₀·b₁ − 2^(k−1)·(m₀ + m₁ − m₀·m₁)

        and each of the two products of private bits is one correlated transfer from the key's holder to the evaluator.

        Args:
            session: The lane to use, fresh for this call.
            parties: This party's half of the agreement between the key's holder and the evaluator, in any order.

        Raises:
            MalformedMessage: The peer's messages have another size.
        """
        top = np.uint64(width_for(2 * self.rows + 1) - 1)
        share = self.share.values & ((np.uint64(2) << top) - np.uint64(1))
        lowest, highest = share & np.uint64(1), share >> top
        halves = (share >> np.uint64(1)) - (highest << top)
        if parties.me == self.share.holders[0]:
            sender = await parties.sending(session)
            products = np.concatenate([lowest, highest << top])
            both = np.negative(await send_correlated(session, parties.peer, sender, products))
        else:
            receiver = await parties.receiving(session)
            choices = np.concatenate([lowest, highest]).astype(np.uint8)
            both = await receive_correlated(session, parties.peer, receiver, choices, np.uint64)
        of_lowest, of_highest = np.split(both, 2)
        return AdditiveShare(halves + of_lowest + of_highest, self.share.holder, self.share.holders)

    def __repr__(self) -> str:
        return f"<DoubledShare of length {self.share.size}>"
