"""Entries of a public table of bits at positions that are shared: nobody learns a position or an entry.

Two parties share an index, i = x + y modulo 2^m. The first holder offers for every value p that y may have the entry
T[x + p mod 2^m], turned over by a random bit that it keeps as its share; the second takes the one at p = y. That is a
transfer of one of 2^m bits, made of m transfers of one of two, in which the bits of y choose:

    pad[p] = G(K_{0, p₀})[p] ⊕ … ⊕ G(K_{m−1, p_{m−1}})[p]        p_b: bit b of p

of which the second knows all summands at p = y alone. Elsewhere the summand of a bit in which p differs from y is
unknown to it, and a position of a stream is used once.

Rounds: 2, and 2 more for every further block of indices.
Output: XOR shares of one bit an index.
Bytes an index: m·⌈128/k⌉/8 from the second holder, 2^m / 8 from the first.
Adversary: semi-honest, private against either holder. Leakage: how many indices; the table is public.

Source: Naor and Pinkas, "Oblivious Transfer and Polynomial Evaluation", STOC 1999, section 2.1 (one of N from log N of
two); the offset table after Dessouky et al., "Pushing the Communication Barrier in Secure Computation using Lookup
Tables", NDSS 2017, section III.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, pack_bits
from crypto.primitives.correlation_robust import hash_blocks
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.shared_bits import check_two_party
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.ot_extension import Keep, fill_up, receive_random, send_random
from link.session import Session
from protos.v1.shares_pb2 import LeafTables

MAX_BITS: Final = 20
_BLOCK_BITS: Final = 7  # of a position inside a hash
BLOCK_BYTES: Final = 32 << 20  # of streams at once
_BLOCK_TWEAKS: Final = 48  # bits below a stream block's number in the tweak, as in `vector_transfers`

Table = NDArray[np.bool_]


async def look_up(session: Session, parties: TwoParty, index: AdditiveShare, table: Table) -> XorShare:
    """Shares of the table's entries at shared positions; both holders call this with the same table.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        index: Positions, in words of as many bits as a position needs or more.
        table: Public.

    Returns:
        One bit an index; of an index behind the table's end, 0.

    Raises:
        TypeError: The shares are of other holders.
        ValueError: The table has more than 2^20 entries, or positions do not fit the shares' words.
        MalformedMessage: The peer's messages have another size.
    """
    check_two_party(parties, index)
    bits = max(len(table) - 1, 0).bit_length()
    if not 1 <= len(table) <= 1 << MAX_BITS or bits > index.word_bits:
        raise ValueError(f"no entry of a table of {len(table)} is looked up by words of {index.word_bits} bits")
    own = (index.values & index.word((1 << bits) - 1)).astype(np.int64)
    filled = np.zeros(1 << bits, np.uint8)
    filled[: len(table)] = table
    found = np.empty(len(own), np.uint8)
    step = rows_at_once(bits)
    drawn = np.frombuffer(session.randomness("shares").bytes(len(own)), np.uint8) & np.uint8(1)
    for start in range(0, len(own), step):
        part = slice(start, start + step)
        if parties.is_first:
            found[part] = drawn[part]
            await _offer(session, parties, own[part], found[part], filled, bits)
        else:
            found[part] = await _take(session, parties, own[part], bits)
    return XorShare(pack_bits(found)[None], len(found), parties.me, parties.holders)


def rows_at_once(bits: int) -> int:
    """Indices of a block, of so many bits each."""
    return max(ROWS, BLOCK_BYTES // (2 * 16 * max(bits, 1) * _blocks(bits)) // ROWS * ROWS)


def offered_bytes(bits: int) -> int:
    """Bytes that the first holder sends for an index of so many bits."""
    return 16 * _blocks(bits)


async def _offer(
    session: Session, parties: TwoParty, own: NDArray[np.int64], masks: NDArray[np.uint8], table: Any, bits: int
) -> None:
    """The first holder: the table from its own offset on, turned over and under pads."""
    number, width = len(own), _blocks(bits)
    seeds = await parties.sending(session)
    pads = np.zeros((number, width, 2), np.uint64)
    streams = [part async for part in send_random(session, parties.peer, seeds, _filled(number) * bits, _stream(width))]
    if bits:
        zero, one = (
            np.concatenate(each).reshape(bits, -1, width, 2)[:, :number] for each in zip(*streams, strict=True)
        )
        for bit in range(bits):
            chosen = _positions(bit, width)
            pads ^= (zero[bit] & ~chosen) ^ (one[bit] & chosen)
    entries = await session.compute(_offset_tables, own, table)
    offered = (entries ^ masks[:, None]).astype(np.uint8)
    await session.send_array(parties.peer, LeafTables, _packed(offered, width) ^ pads)  # -> 2


async def _take(session: Session, parties: TwoParty, own: NDArray[np.int64], bits: int) -> NDArray[np.uint8]:
    """The second holder: the entry at its own number."""
    number, width = len(own), _blocks(bits)
    choices = np.zeros((bits, _filled(number)), np.uint8)
    choices[:, :number] = own[None] >> np.arange(bits)[:, None] & 1
    seeds = await parties.receiving(session)
    came = receive_random(session, parties.peer, seeds, fill_up(choices.reshape(-1)), _stream(width))
    streams = [part async for part in came]
    pads = np.zeros((number, width, 2), np.uint64)
    if bits:
        pads = np.bitwise_xor.reduce(np.concatenate(streams).reshape(bits, -1, width, 2)[:, :number], axis=0)
    offered = await session.recv_array(parties.peer, LeafTables, np.uint64, (number, width, 2))  # <- 2
    rows = np.arange(number)
    words = (offered ^ pads)[rows, own >> _BLOCK_BITS, own >> 6 & 1]
    return np.asarray(words >> (own & 63).astype(np.uint64) & np.uint64(1), np.uint8)


def _blocks(bits: int) -> int:
    """Hashes that a stream of 2^bits bits takes."""
    return 1 << max(bits - _BLOCK_BITS, 0)


def _filled(number: int) -> int:
    return -(-number // ROWS) * ROWS


def _stream(width: int) -> Keep:
    """Keeps of each transfer's message a stream of so many hashes, shape (n, width, 2)."""

    def keep(rows: Rows128, offsets: Rows128, first: int, domain: int) -> list[NDArray[Any]]:
        blocks = [hash_blocks(rows, first + (block << _BLOCK_TWEAKS), domain, offsets) for block in range(width)]
        return list(np.stack(blocks, axis=2))

    return keep


def _positions(bit: int, width: int) -> NDArray[np.uint64]:
    """All positions in which a bit is set, packed, shape (width, 2)."""
    every = np.arange(width << _BLOCK_BITS) >> bit & 1
    (packed,) = _packed(every.astype(np.uint8)[None], width)
    return np.asarray(packed, np.uint64)


def _packed(bits: NDArray[np.uint8], width: int) -> NDArray[np.uint64]:
    """Bits by row, filled up with zeros, as words: shape (n, width, 2)."""
    whole = np.zeros((len(bits), width << _BLOCK_BITS), np.uint8)
    whole[:, : bits.shape[1]] = bits
    words: NDArray[np.uint64] = np.packbits(whole, axis=1, bitorder="little").view(np.uint64).reshape(-1, width, 2)
    return words


def _offset_tables(own: NDArray[np.int64], table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The table as seen from each offset, shape (n, 2^m)."""
    size = len(table)
    doubled = np.concatenate([table, table])
    found: NDArray[np.uint8] = np.lib.stride_tricks.sliding_window_view(doubled, size)[own]
    return found
