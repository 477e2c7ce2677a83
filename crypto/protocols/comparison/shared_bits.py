"""Computing on XOR shares of two parties, and opening what has been computed.

`conjunction` is the AND of shared words, bit by bit: both operands go to the other holder under a triple's bits.

Rounds: `conjunction` 1, `open_bits` and `open_values` 1.
Bytes: `conjunction` 2 bits an AND from each party, beside the triple's; `open_bits` one bit for each that is opened,
    from each holder to each receiver.
Adversary: semi-honest; the holders learn what is opened to them and nothing else. Leakage: sizes.

Source: Beaver, "Efficient Multiparty Protocols Using Circuit Randomization", CRYPTO 1991; Goldreich, Micali and
Wigderson, STOC 1987.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare, Share, check_same_holders
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare, words_of
from crypto.protocols.comparison.and_triples import Triples
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from protos.v1.shares_pb2 import MaskedOperands


async def conjunction(session: Session, parties: TwoParty, triples: Triples, x: XorShare, y: XorShare) -> XorShare:
    """The share of x ∧ y; both parties call this with their shares of the same words, in the same order on one lane.

    Args:
        session: The lane to use.
        parties: This party's half of the agreement with the other.
        triples: A stock of both, with eight for each byte of the planes of x.
        x: Of both parties' holders.
        y: As many words, as wide.

    Raises:
        MalformedMessage: The peer's operands have another size.
    """
    check_two_party(parties, x, y)
    if (x.number, x.width) != (y.number, y.width):
        raise ValueError("an AND takes words of one number and width")
    a, b, c = triples.take((x.width, x.planes.shape[1]))
    masked = np.stack([x.planes ^ a, y.planes ^ b])
    await session.send_array(parties.peer, MaskedOperands, masked)  # -> 1
    d, e = masked ^ await session.recv_array(parties.peer, MaskedOperands, np.uint8, masked.shape)  # <- 1
    planes = c ^ (d & b) ^ (e & a)
    if parties.is_first:
        planes ^= d & e
    return XorShare(planes, x.number, x.holder, x.holders)


async def open_bits(
    session: Session,
    share: XorShare | None,
    *,
    label: str,
    holders: Sequence[str],
    number: int,
    width: int = 1,
    to: Sequence[str] | None = None,
) -> Words | None:
    """Opens words shared as bits to the receivers; holders and receivers call this.

    Args:
        session: The lane to use.
        share: This party's share, None where it holds none.
        label: A label of the job's statement, for at least `number` values per receiver.
        holders: All holders of shares.
        number: How many words; public.
        width: Bits of a word, at most 64; public.
        to: The receivers; all parties by default.

    Returns:
        The words, shape (number,), in the shortest type that holds them; None to a party that is no receiver.

    Raises:
        UndeclaredDisclosure: The statement does not name the label, a receiver or enough values; nothing has left.
        MalformedMessage: A holder opens something of another size.
    """
    if share is not None and (share.number, share.width) != (number, width):
        raise ValueError(f"{share} is none of {number} words of {width} bits")
    own = None if share is None else share.cleared()
    shape = (width, -(-number // 8))
    opened = await _opened(session, own, label, holders, np.dtype(np.uint8), shape, number, to)
    if opened is None:
        return None
    return words_of(np.bitwise_xor.reduce(opened), number, np.min_scalar_type((1 << width) - 1).type)


async def open_values(
    session: Session,
    share: AdditiveShare | None,
    *,
    label: str,
    holders: Sequence[str],
    number: int,
    word: type[np.unsignedinteger[Any]] = np.uint64,
    to: Sequence[str] | None = None,
) -> Words | None:
    """Opens an additively shared vector to the receivers; what is not said here is as for `open_bits`.

    Args:
        session: The lane to use.
        share: This party's share, None where it holds none.
        label: As for `open_bits`.
        holders: All holders of shares.
        number: Length of the vector; public.
        word: That of the shares; public. A short one saves bytes.
        to: The receivers; all parties by default.

    Returns:
        The vector, shape (number,), of type `word`; None to a party that is no receiver.
    """
    if share is not None and (share.size, share.word) != (number, word):
        raise ValueError(f"{share} is none of {number} values in {word.__name__}")
    own = None if share is None else share.values
    opened = await _opened(session, own, label, holders, np.dtype(word), (number,), number, to)
    return None if opened is None else np.add.reduce(opened, axis=0, dtype=word)


def check_two_party(parties: TwoParty, *shares: Share) -> None:
    """Refuses shares that are not this party's, or not of both computing parties.

    Raises:
        TypeError: One is of other holders.
    """
    for share in shares:
        check_same_holders(shares[0], share)
        if (share.holder, share.holders) != (parties.me, parties.holders):
            raise TypeError(f"a share of {share.holders} is none of {parties.holders} at {parties.me}")


async def _opened(
    session: Session,
    own: NDArray[Any] | None,
    label: str,
    holders: Sequence[str],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    number: int,
    to: Sequence[str] | None,
) -> list[NDArray[Any]] | None:
    """All holders' parts at a receiver."""
    receivers = session.parties if to is None else tuple(to)
    parts = []
    if own is not None:
        await session.open(label, own, receivers, number=number)  # -> 1
        parts.append(own)
    if session.me not in receivers:
        return None
    for holder in holders:
        if holder != session.me:
            parts.append(await session.receive_opened(holder, label, dtype, shape, number=number))  # <- 1
    return parts
