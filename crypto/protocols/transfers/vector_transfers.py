"""Correlated oblivious transfer of vectors: a receiver's column of bits times many of a sender's columns at once.

The sender's columns hold numbers modulo 2^w, w = 8, 16 or 32. In row t the receiver's bit c chooses in one transfer,
and the sender's whole row of correlations x rides on it: with p(q) as many numbers expanded from a row q of the
extension, the sender has p(q) and p(q ⊕ Δ) and sends p(q) − p(q ⊕ Δ) + x; the receiver, which has p(q ⊕ c·Δ), adds c
times what came. Then

    receiver's words − sender's words = c·x    for every row and every correlation.

Rows are expanded 16 bytes at a time: block l for transfer i is H(i + 2^48·l, q), under a tweak of its own.

Rounds: 2, and 2 more for every further `WINDOW` batches, since the receiver runs no further ahead.
Bytes: ⌈128/k⌉/8 a transfer from the receiver, w/8 for each of its correlations from the sender.
Adversary: as in `ot_extension`. Leakage: numbers of rows, columns and correlations.

Source: Asharov, Lindell, Schneider and Zohner, CCS 2013, section 5 (correlated transfers); Mohassel and Zhang,
"SecureML", IEEE S&P 2017, section IV-B.2 (one transfer for a row of a matrix). Hash as in `ot_extension`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, xor_each
from crypto.primitives.correlation_robust import hash_rows
from crypto.primitives.shares.masks import Words
from crypto.protocols.transfers.extension_batches import hear_batch, tell_batch
from crypto.protocols.transfers.extension_seeds import Expanded, ReceiverSeeds, SenderSeeds, Told
from crypto.protocols.transfers.ot_extension import BATCH, fill_up
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages

BLOCK: Final = 16  # bytes: what one call of the hash gives a row
STRETCH: Final = 1 << 14  # rows at once: a block of correlations, 256 KB, stays in the second-level cache
MAX_WIDTH: Final = 1024  # correlations of one transfer
BATCH_BYTES: Final = 8 << 20  # of corrections
WINDOW: Final = 4  # batches; what a party keeps stays below 100 MB
_BLOCK_TWEAKS: Final = 48  # bits below a block's number in the tweak; no extension makes 2^48 transfers

Word = type[np.unsignedinteger[Any]]
Bits = NDArray[np.uint8]


class Segment(NamedTuple):
    """Transfers under one of the receiver's columns.

    Attributes:
        column: Its number.
        rows: First row and the one after the last.
        width: Correlations of each transfer.
    """

    column: int
    rows: tuple[int, int]
    width: int

    @property
    def length(self) -> int:
        """Transfers."""
        return self.rows[1] - self.rows[0]


Batch = list[Segment]
Pending = tuple[Batch, Bits, int, Rows128]
Keep = Callable[[Segment, int, Words], None]
"""Takes a segment, the first of some correlations, and this party's words of them, shape (rows, correlations)."""


def stretches(rows: int) -> list[tuple[int, int]]:
    """Rows in stretches of at most `STRETCH` and nearly equal length, which begin at multiples of 8."""
    if rows == 0:
        return []
    length = -(-rows // -(-rows // STRETCH))
    length = -(-length // 8) * 8
    return [(start, min(start + length, rows)) for start in range(0, rows, length)]


def batches(rows: int, widths: Sequence[int], word: Word) -> list[Batch]:
    """What is transferred, in order: stretch by stretch, all columns with at least one correlation.

    Args:
        rows: Length of the columns.
        widths: By the receiver's column, the number of correlations, at most `MAX_WIDTH`.
        word: The correlations' type.
    """
    columns = list(enumerate(widths))
    return packed(
        [Segment(column, stretch, width) for stretch in stretches(rows) for column, width in columns if width], word
    )


def packed(segments: Iterable[Segment], word: Word) -> list[Batch]:
    """Segments in batches, in their order; each segment fits one."""
    word_bytes = np.dtype(word).itemsize
    cut: list[Batch] = []
    transfers = size = 0
    for segment in segments:
        more = segment.length * segment.width * word_bytes
        transfers, size = transfers + segment.length, size + more
        if not cut or transfers > BATCH or size > BATCH_BYTES:
            cut.append([])
            transfers, size = segment.length, more
        cut[-1].append(segment)
    return cut


def transfers_of(batch: Batch) -> int:
    """How many transfers a batch has, filled up to whole rows of the extension."""
    return -(-sum(segment.length for segment in batch) // ROWS) * ROWS


def corrections_of(batch: Batch) -> int:
    """How many words the sender of a batch sends."""
    return sum(segment.length * segment.width for segment in batch)


def rounds(number: int) -> int:
    """Rounds of so many batches."""
    return 2 * -(-number // WINDOW)


def in_blocks(columns: Words) -> list[Words]:
    """Columns of correlations as the transfers take them: row by row, 16 bytes at a time.

    Args:
        columns: Shape (correlations, rows).

    Returns:
        Arrays of shape (rows, correlations), the last perhaps narrower than the others.
    """
    step = BLOCK // columns.itemsize
    return [np.ascontiguousarray(columns[first : first + step].T) for first in range(0, len(columns), step)]


async def send_vectors(
    session: Session,
    peer: str,
    seeds: SenderSeeds,
    work: Sequence[Batch],
    word: Word,
    correlations: Callable[[Segment], Sequence[Words]],
    keep: Keep,
) -> None:
    """The sender's part.

    Args:
        session: The lane to use.
        peer: The receiver.
        seeds: From `TwoParty.sending`, for this call alone.
        work: From `batches`, the receiver's own.
        word: The correlations' type, the receiver's own.
        correlations: Gives a segment's correlations `in_blocks`; called off the event loop, after all calls of `keep`
            with segments before.
        keep: Takes the sender's words, of which the receiver's are larger by choice · correlation; called likewise.

    Raises:
        MalformedMessage: The receiver's rows have another size.
        ProtocolViolation: The receiver's choices contradict each other; nothing of the batch has been used.
    """

    def masked(batch: Batch, told: Told) -> Words:
        first = seeds.used
        rows = seeds.expand(told)
        turned = xor_each(rows, seeds.delta)
        out, done = np.empty(corrections_of(batch), word), 0
        for segment, part in _parts(batch):
            tweak, blocks = first + part.start, correlations(segment)
            zeros, ones = (_expanded(each[part], tweak, seeds.domain, segment.width, word) for each in (rows, turned))
            for (place, zero), (_, one), block in zip(zeros, ones, blocks, strict=True):
                target = out[done : done + block.size].reshape(block.shape)
                np.subtract(zero, one, out=target)
                target += block
                done += block.size
                keep(segment, place, zero)
        return out

    for batch in work:
        told = await hear_batch(session, peer, seeds.field_bits, transfers_of(batch))  # <- 1
        corrections = await session.compute(masked, batch, told)
        await session.send_array(peer, EncryptedMessages, corrections)  # -> 2


async def receive_vectors(
    session: Session,
    peer: str,
    seeds: ReceiverSeeds,
    work: Sequence[Batch],
    word: Word,
    choices: Callable[[Segment], Bits],
    keep: Keep,
) -> None:
    """The receiver's part.

    Args:
        session: The lane to use.
        peer: The sender.
        seeds: From `TwoParty.receiving`, for this call alone.
        work: From `batches`, the sender's own.
        word: The correlations' type, the sender's own.
        choices: Gives a segment's bits, one a row, each 0 or 1; called off the event loop.
        keep: Takes the receiver's words; called likewise.

    Raises:
        MalformedMessage: The sender's corrections have another size.
    """

    def expanded(batch: Batch) -> tuple[Expanded, Pending]:
        first = seeds.used
        bits = np.concatenate([choices(segment) for segment in batch])
        made = seeds.expand(fill_up(bits))
        return made, (batch, bits, first, made.rows)

    def unmasked(batch: Batch, bits: Bits, first: int, rows: Rows128, corrections: Words) -> None:
        done = 0
        for segment, part in _parts(batch):
            chosen = np.empty((segment.length, 2), np.uint64)  # 16 bytes, all set where the bit is
            chosen[:, 0] = chosen[:, 1] = np.negative(bits[part].astype(np.uint64))
            for place, words in _expanded(rows[part], first + part.start, seeds.domain, segment.width, word):
                came = corrections[done : done + words.size].reshape(words.shape)
                done += words.size
                keep(segment, place, words + (came & _heads(chosen, words.shape[1], word)))

    async def take(pending: Pending) -> None:
        shape = (corrections_of(pending[0]),)
        corrections = await session.recv_array(peer, EncryptedMessages, word, shape)  # <- 2
        await session.compute(unmasked, *pending, corrections)

    ahead: deque[Pending] = deque()
    for batch in work:
        if len(ahead) == WINDOW:
            await take(ahead.popleft())
        made, pending = await session.compute(expanded, batch)
        await tell_batch(session, peer, made)  # -> 1
        ahead.append(pending)
    while ahead:
        await take(ahead.popleft())


def _parts(batch: Batch) -> Iterator[tuple[Segment, slice]]:
    """Each segment and its place among the batch's transfers."""
    done = 0
    for segment in batch:
        yield segment, slice(done, done + segment.length)
        done += segment.length


def _expanded(rows: Rows128, tweak: int, domain: int, width: int, word: Word) -> Iterator[tuple[int, Words]]:
    """`width` words a row, up to 16 bytes at a time, each time with the number of the first."""
    step = BLOCK // np.dtype(word).itemsize
    for block, first in enumerate(range(0, width, step)):
        hashed = hash_rows(rows, tweak + (block << _BLOCK_TWEAKS), domain)
        yield first, _heads(hashed, min(step, width - first), word)


def _heads(rows: Rows128, number: int, word: Word) -> Words:
    """The first words of each row, shape (n, number), contiguous."""
    size = number * np.dtype(word).itemsize
    if size < BLOCK:  # as a field of records: numpy copies records faster than short rows, and computes faster on whole
        record = np.dtype({"names": ["head"], "formats": [f"V{size}"], "itemsize": BLOCK})
        rows = np.ascontiguousarray(rows.view(record)["head"])
    return rows.view(word).reshape(-1, number)
