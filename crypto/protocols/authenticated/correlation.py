"""Authentication of bits that one of two holders knows: its bits are its choices in an oblivious-transfer extension.

The extension leaves q with its sender, who has Δ, and t = q ⊕ c·Δ with the receiver of choice c. So t authenticates c
under the sender's keys Δ and q. Both holders are sender in one extension and receiver in the other, and take for each
of their bits

    t_p = c_p·Δ_p ⊕ (what this one has as a receiver) ⊕ (what it has as a sender of the other's bit),

of which the XOR is (c_1 ⊕ c_2)·(Δ_1 ⊕ Δ_2): `AuthenticatedBits` of c_1 ⊕ c_2. A bit that one of them alone has is
shared with 0 at the other.

Rounds: 1. Bytes: ⌈128/k⌉/8 a bit from each party, k = `FIELD_BITS`.
Adversary: malicious, as of `extension_check`: each batch is checked before anything of it is used. A holder that has
    guessed bits of the other's Δ there knows them, but with 2^-g a guess of g bits.
Leakage: the number of bits.

Source: Nielsen, Nordholt, Orlandi and Burra, CRYPTO 2012, section 4; Nielsen, Schneider and Trifiletti, "Constant Round
Maliciously Secure 2PC with Function-independent Preprocessing using LEGO", NDSS 2017 (codes right from an extension).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import Rows128
from crypto.primitives.correlation_robust import hash_blocks
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.ot_extension import Keep, fill_up, receive_random, send_random
from link.session import Session
from link.tasks import together

FIELD_BITS: Final = 8  # rows are most of all bytes


class Correlated(NamedTuple):
    """What a holder has of its own bits and of the other's, shape (columns, bits), by what is kept of rows.

    Attributes:
        own: Of its own bits, as receiver.
        zero: Of the other's, as sender: what that one has where its bit is 0.
        one: And where it is 1.
    """

    own: Tags
    zero: Tags
    one: Tags


class Kept(NamedTuple):
    """What is kept of rows.

    Attributes:
        of: As of `ot_extension`.
        columns: Words of a receiver's row, and of a sender's row ⊕ 0; and of a sender's row ⊕ Δ.
    """

    of: Keep
    columns: tuple[int, int]


def _words(rows: Rows128, offsets: Rows128, _first: int, _domain: int) -> Sequence[NDArray[Any]]:
    return [rows[:, : 1 - place] for place in range(len(offsets))]


def _words_and_hashes(rows: Rows128, offsets: Rows128, first: int, domain: int) -> Sequence[NDArray[Any]]:
    hashed = hash_blocks(rows, first, domain, offsets)[:, :, 0]
    return [np.stack([rows[:, 0], hashed[0]], axis=1), *(each[:, None] for each in hashed[1:])]


WORDS: Final = Kept(_words, (1, 0))
"""The first word of a row."""

WORDS_AND_HASHES: Final = Kept(_words_and_hashes, (2, 1))
"""The first word of a row, and that of its hash; of a row ⊕ Δ the latter."""


def keyed_pair(session: Session, holders: tuple[str, str]) -> TwoParty:
    """A holder's half of the agreement on keys.

    Args:
        session: The lane to agree on, fresh for this call.
        holders: The two computing parties, in the same order at both.
    """
    return TwoParty(session, holders, field_bits=FIELD_BITS, keyed=True)


async def key_of(pair: TwoParty, session: Session) -> np.uint64:
    """This holder's key: the first word of its Δ."""
    return np.uint64((await pair.sending(session)).delta[0])


async def correlated(
    session: Session, pair: TwoParty, bits: Bits, keep: Kept = WORDS, *, of_peer: int | None = None
) -> Correlated:
    """Authenticates bits of both holders; both call this.

    Args:
        session: The lane to use, fresh for this call.
        pair: From `keyed_pair`.
        bits: This holder's, shape (n,).
        keep: What is kept of a row.
        of_peer: How many the other has; by default as many.

    Raises:
        MalformedMessage: The peer's rows have another size.
        ProtocolViolation: The peer's bits contradict each other.
    """
    number, (columns, columns_of_one) = len(bits), keep.columns
    others = number if of_peer is None else of_peer
    sending, receiving = session.lane(f"from {pair.me}"), session.lane(f"from {pair.peer}")
    sender, receiver = await pair.both(sending, receiving)
    own = np.empty((columns, number), np.uint64)
    zero, one = (np.empty((width, others), np.uint64) for width in (columns, columns_of_one))

    async def send() -> None:
        done = 0
        async for of_zero, of_one in send_random(sending, pair.peer, sender, others, keep.of):
            size = min(len(of_zero), others - done)
            zero[:, done : done + size], one[:, done : done + size] = of_zero[:size].T, of_one[:size].T
            done += size

    async def receive() -> None:
        done = 0
        async for chosen in receive_random(receiving, pair.peer, receiver, fill_up(bits), keep.of):
            size = min(len(chosen), number - done)
            own[:, done : done + size] = chosen[:size].T
            done += size

    await together([send(), receive()])
    return Correlated(own, zero, one)


def tags_of(key: np.uint64, bits: Bits, of: Correlated) -> Tags:
    """Tags of the bits that both holders share, by this one's; all arrays of shape (n,)."""
    tags: Tags = of.own[0] ^ of.zero[0]
    tags ^= bits * key
    return tags


def shared(pair: TwoParty, key: np.uint64, bits: Bits, tags: Tags, width: int) -> AuthenticatedBits:
    """The share of so many planes, of bits one after the other."""
    return AuthenticatedBits(bits[None, :], tags[None, :], key, pair.me, pair.holders).reshaped(width)
