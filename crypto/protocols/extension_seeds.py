"""Seeds of an oblivious-transfer extension: what two parties agree on once and then expand into millions of transfers.

The extension's sender holds a secret Δ of 128 bits in blocks of k; the receiver holds, for each block, 2^k seeds, of
which the sender knows all but the one at position Δ_b. Both expand their seeds' streams: the receiver sums all of a
block's streams into u_b and, weighted by the bits of their positions, into k rows v; the sender gets the same sums over
positions relative to Δ_b. Then w = v ⊕ Δ·u row by row, and the receiver corrects u to its choices.

Rounds: `prepare_sending`/`prepare_receiving` 2 (1 with k = 1), once per pair of parties, direction and session.

Adversary: semi-honest (the trees' sums are not checked; `ot_checked` takes k = 1, which has none).
Costs: 128 base transfers; 16/k bytes and 2^k/k bytes of keystream per transfer: k = 1 is the classic extension, k = 2
halves the traffic at equal work, larger k trade work for traffic.

Source: Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt Model", CRYPTO 2022,
sections 3 and 4 (k = 1 is Ishai, Kilian, Nissim and Petrank, CRYPTO 2003, as optimised by Asharov, Lindell, Schneider
and Zohner, CCS 2013); puncturable seeds as in Boyle et al., "Efficient Two-Round OT Extension and Silent
Non-Interactive Secure Computation", CCS 2019, Figure 13.
"""

from __future__ import annotations

import hashlib
from typing import Final, Never

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, transpose, unpack_bits
from crypto.primitives.keystream import Keystream
from crypto.protocols.base_ot import KEY_BYTES, Keys, receive_keys, send_keys
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import TreeSums

FIELD_BITS: Final = (1, 2, 4, 8)  # values of k that divide 128 evenly and keep the work in bounds
DEFAULT_FIELD_BITS: Final = 2
_SLACK_WORDS: Final = 2
_START_BYTES: Final = 24  # a counter block and a domain

# An extension takes and frees some megabytes a batch. The C library of Linux gives each back to the system, and half of
# the time would go into page faults, until an array this large has once been freed; it touches no memory.
np.empty(31 << 20, np.uint8)

Streams = list[list[tuple[Keystream, int]]]
"""By block, its streams with their weights."""

Seeds = NDArray[np.uint8]
"""Shape (128 / k, nodes, 16): a level of every block's tree."""


class ReceiverSeeds:
    """The receiver's half: all streams. To be used by one task at a time, in the same order as the sender's.

    Attributes:
        used: Transfers made so far; the next one's tweak.
        domain: Tells the tweaks of these streams from those of others under the same Δ.
    """

    __slots__ = ("_seeds", "_streams", "domain", "field_bits", "used")

    def __init__(self, seeds: Seeds, start: bytes = bytes(_START_BYTES)) -> None:
        """`start` tells where in the seeds' keystreams these streams begin, and their domain."""
        self._seeds = seeds
        self._streams: Streams = [
            [(_stream(seed, start), position) for position, seed in enumerate(block)] for block in seeds
        ]
        self.domain = _domain(start)
        self.field_bits = ROWS // len(seeds)
        self.used = 0

    def fork(self, label: bytes) -> ReceiverSeeds:
        """Independent streams of the same seeds for a task of its own; the sender forks under the same label.

        Args:
            label: Never used before with these seeds.
        """
        return ReceiverSeeds(self._seeds, _start(label))

    def expand(self, choices: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Rows128]:
        """The next transfers.

        Args:
            choices: Packed choice bits, shape (n / 8,), n a multiple of 128.

        Returns:
            What the sender needs, shape (128 / k, n / 8); and the receiver's rows t, shape (n, 2).
        """
        sums, rows = _expand(self._streams, len(choices) // 8)
        sums ^= choices.view(np.uint64)
        self.used += len(choices) * 8
        return sums.view(np.uint8), transpose(rows.view(np.uint8))

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("seeds of an extension are never copied or pickled: a copy would repeat their streams")

    def __repr__(self) -> str:
        return f"<ReceiverSeeds, {self.used} transfers made>"


class SenderSeeds:
    """The sender's half: Δ, and all streams but one a block. To be used by one task at a time.

    Attributes:
        delta: Shape (2,), the secret correlation: t = q ⊕ (choice · Δ).
        used: Transfers made so far; the next one's tweak.
        domain: Tells the tweaks of these streams from those of others under the same Δ.
    """

    __slots__ = ("_masks", "_seeds", "_streams", "delta", "domain", "field_bits", "used")

    def __init__(self, seeds: Seeds, delta: bytes, start: bytes = bytes(_START_BYTES)) -> None:
        """`seeds` as from `_punctured`: what stands at the punctured position is never used; `start` as above."""
        self._seeds = seeds
        self.domain = _domain(start)
        self.field_bits = ROWS // len(seeds)
        bits = unpack_bits(np.frombuffer(delta, np.uint8), ROWS).reshape(len(seeds), self.field_bits)
        self._masks = np.where(bits == 1, np.uint64(2**64 - 1), np.uint64(0))
        self.delta: NDArray[np.uint64] = np.frombuffer(delta, "<u8").astype(np.uint64)
        self._streams: Streams = [
            [(_stream(seed, start), position ^ hole) for position, seed in enumerate(block) if position != hole]
            for block, hole in zip(seeds, _values(bits), strict=True)
        ]
        self.used = 0

    def fork(self, label: bytes) -> SenderSeeds:
        """Independent streams of the same seeds under the same Δ for a task of its own, as `ReceiverSeeds.fork`."""
        return SenderSeeds(self._seeds, self.delta.astype("<u8").tobytes(), _start(label))

    def expand(self, corrections: NDArray[np.uint8]) -> Rows128:
        """The next transfers.

        Args:
            corrections: From `ReceiverSeeds.expand`, shape (128 / k, n / 8).

        Returns:
            The sender's rows q, shape (n, 2).
        """
        words = corrections.shape[1] // 8
        _, rows = _expand(self._streams, words)
        by_block = rows.reshape(-1, self.field_bits, words)
        for block, row, mask in zip(by_block, corrections.view(np.uint64), self._masks, strict=True):
            block ^= row & mask[:, None]  # no branch on Δ
        self.used += words * 64
        return transpose(rows.view(np.uint8))

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("seeds of an extension are never copied or pickled: a copy would repeat their streams")

    def __repr__(self) -> str:
        return f"<SenderSeeds, {self.used} transfers made>"


async def prepare_receiving(session: Session, peer: str, *, field_bits: int = DEFAULT_FIELD_BITS) -> ReceiverSeeds:
    """The receiver's part: all seeds of all blocks.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The extension's sender.
        field_bits: k, public.
    """
    _check_field_bits(field_bits)
    zero, one = await send_keys(session.lane("base"), peer, ROWS)  # -> 1  <- 1
    by_block = (ROWS // field_bits, field_bits, KEY_BYTES)
    keys = np.stack([zero.reshape(by_block), one.reshape(by_block)], axis=2)
    level = keys[:, 0]
    sums = np.empty((ROWS // field_bits, field_bits - 1, 2, KEY_BYTES), np.uint8)
    for depth in range(1, field_bits):
        level = _children(level)
        sums[:, depth - 1] = _side_sums(level) ^ keys[:, depth]
    if field_bits > 1:
        await session.send_array(peer, TreeSums, sums)  # -> 2
    return ReceiverSeeds(level)


async def prepare_sending(session: Session, peer: str, *, field_bits: int = DEFAULT_FIELD_BITS) -> SenderSeeds:
    """The sender's part: Δ, and of every block all seeds but the one at Δ_b.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The extension's receiver.
        field_bits: k, public.

    Raises:
        MalformedMessage: The receiver's messages are not as they must be.
    """
    _check_field_bits(field_bits)
    delta = session.randomness("delta").bytes(ROWS // 8)
    bits = unpack_bits(np.frombuffer(delta, np.uint8), ROWS).reshape(-1, field_bits)
    # The hole's path from the root goes along its bits from the highest down; the sender takes the other side's sums.
    path = bits[:, ::-1]
    keys = await receive_keys(session.lane("base"), peer, (1 - path).reshape(-1))  # -> 1  <- 1
    keys = keys.reshape(*path.shape, KEY_BYTES)
    sums = None
    if field_bits > 1:
        shape = (len(path), field_bits - 1, 2, KEY_BYTES)
        sums = await session.recv_array(peer, TreeSums, np.uint8, shape)  # <- 2
    return SenderSeeds(_punctured(keys, path, sums), delta)


def _punctured(keys: Keys, path: NDArray[np.uint8], sums: NDArray[np.uint8] | None) -> Seeds:
    """All leaves but those at the ends of the paths, which hold nothing of use."""
    blocks = np.arange(len(path))
    level = np.zeros((len(path), 2, KEY_BYTES), np.uint8)
    level[blocks, 1 - path[:, 0]] = keys[:, 0]
    hole = path[:, 0].astype(np.int64)
    for depth in range(1, path.shape[1]):
        assert sums is not None
        level = _children(level)
        level[blocks, 2 * hole] = level[blocks, 2 * hole + 1] = 0
        side = 1 - path[:, depth]
        known = sums[blocks, depth - 1, side] ^ keys[:, depth] ^ _side_sums(level)[blocks, side]
        level[blocks, 2 * hole + side] = known
        hole = 2 * hole + path[:, depth]
    return level


def _children(level: Seeds) -> Seeds:
    """Two seeds out of each, in order."""
    blocks, nodes, size = level.shape
    joined = b"".join(Keystream(seed.tobytes(), bytes(size)).take(2 * size) for seed in level.reshape(-1, size))
    return np.frombuffer(joined, np.uint8).reshape(blocks, 2 * nodes, size).copy()


def _side_sums(level: Seeds) -> NDArray[np.uint8]:
    """Per block the sums of the left and of the right children, shape (blocks, 2, 16)."""
    sums: NDArray[np.uint8] = np.bitwise_xor.reduce(level.reshape(len(level), -1, 2, KEY_BYTES), axis=1)
    return sums


def _expand(streams: Streams, words: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Sums of the next words of every block's streams: of all, and of those whose weight has bit j set.

    A stream that is not there counts as zero, which is right for the one of weight 0 in the weighted sums.

    Returns:
        Shapes (blocks, words) and (128, words).
    """
    weights = max(weight for _, weight in streams[0]) + 1
    field_bits = weights.bit_length() - 1
    sums, rows = np.empty((len(streams), words), np.uint64), np.empty((len(streams), field_bits, words), np.uint64)
    buffer = np.zeros((weights, words + _SLACK_WORDS), np.uint64)
    targets = list(buffer)
    for block, block_sum, block_rows in zip(streams, sums, rows, strict=True):
        for stream, weight in block:
            stream.fill(targets[weight])
        if len(block) < weights:
            targets[0][:] = 0  # what folding left there
        _fold(buffer[:, :words], block_sum, block_rows)
    return sums, rows.reshape(-1, words)


def _fold(streams: NDArray[np.uint64], block_sum: NDArray[np.uint64], rows: NDArray[np.uint64]) -> None:
    """Halves the streams (2^k, words), in place, once a bit of the weight: the odd add to its row and to the even."""
    for row in rows[:-1]:
        odd = streams[1::2]
        np.bitwise_xor.reduce(odd, axis=0, out=row)
        streams = streams[0::2]
        streams ^= odd
    rows[-1] = streams[1]
    np.bitwise_xor(streams[0], streams[1], out=block_sum)


def _values(bits: NDArray[np.uint8]) -> list[int]:
    """Rows of bits, lowest first, as integers."""
    weights = 1 << np.arange(bits.shape[1], dtype=np.int64)
    values: list[int] = (bits @ weights).tolist()
    return values


def _stream(seed: NDArray[np.uint8], start: bytes) -> Keystream:
    return Keystream(seed.tobytes(), start[:16])


def _start(label: bytes) -> bytes:
    """A first counter block and a domain. Counters of 2^20 labels lie 2^30 blocks apart but with chance 2^-57."""
    return hashlib.sha256(b"comine extension streams 1" + label).digest()[:_START_BYTES]


def _domain(start: bytes) -> int:
    return int.from_bytes(start[16:], "little")


def _check_field_bits(field_bits: int) -> None:
    if field_bits not in FIELD_BITS:
        raise ValueError(f"field_bits is one of {FIELD_BITS}, not {field_bits}")
