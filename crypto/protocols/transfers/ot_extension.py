"""Oblivious-transfer extension: millions of transfers out of one pair of seeds, by symmetric operations alone.

Per transfer the sender holds q and Δ, the receiver its choice c and t = q ⊕ c·Δ (`extension_seeds`); the hash H breaks
the correlation. Variants, each as a stream of batches, so that memory stays bounded whatever their number:
    random        the sender gets H(q) and H(q ⊕ Δ), the receiver H(t), the one of its choice
    correlated    over Z_2^w: the sender gets a = H(q), the receiver a + c·x for the sender's x
    chosen        the sender's own messages of 1 to 16 bytes under the random ones

Rounds: 1 for random, 2 for correlated and chosen transfers, after `prepare_…`; from 2·`WINDOW` batches (8 million
    transfers) on, the receiver waits for the sender once a window.
Bytes: ⌈128/k⌉/8 a transfer from the receiver, and `batch_bytes` of none a batch; with correlations w/8, with
    chosen messages 2·length from the sender.

Adversary: malicious, for random transfers (`extension_check`): a batch is checked before any of it is used. A sender
    that deviates can send other corrections or messages, which are its own to choose.
Leakage: the number of transfers.

Source: Ishai, Kilian, Nissim and Petrank, CRYPTO 2003; correlated transfers as Asharov, Lindell, Schneider and Zohner,
CCS 2013, section 5; Roy, CRYPTO 2022, for k > 1; H as Guo, Katz, Wang and Yu, S&P 2020, tweaks counted per Δ.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, pack_bits
from crypto.primitives.correlation_robust import hash_blocks, hash_words
from crypto.primitives.shares.masks import Words
from crypto.protocols.transfers.extension_batches import hear_batch, tell_batch
from crypto.protocols.transfers.extension_seeds import Expanded, ReceiverSeeds, SenderSeeds, Told
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from protos.v1.shares_pb2 import BatchesTaken

BATCH: Final = 1 << 17  # transfers at once: rows and streams stay in the cache, messages near what gRPC likes best
WINDOW: Final = 32  # batches; a receiver runs ahead of its sender by two windows at most, so that queues stay bounded
ROW_BYTES: Final = 16

T = TypeVar("T")

Packed = NDArray[np.uint8]
Keep = Callable[[Rows128, Rows128, int, int], Sequence[NDArray[Any]]]
"""Takes rows of shape (n, 2), offsets, the first tweak and the domain; gives for each offset what is kept of the hashes
of rows ⊕ offset. Called off the event loop, before the next batch."""

_NO_OFFSET: Final = np.zeros((1, 2), np.uint64)


def whole(rows: Rows128, offsets: Rows128, first: int, domain: int) -> list[Rows128]:
    """Keeps all 128 bits: shape (n, 2)."""
    return list(hash_blocks(rows, first, domain, offsets))


def lowest_word(word: type[np.unsignedinteger[Any]]) -> Keep:
    """Keeps the lowest bits of each hash: shape (n,) of type `word`."""
    return lambda rows, offsets, first, domain: list(hash_words(rows, first, domain, offsets, word)[:, 0])


def lowest_bits(rows: Rows128, offsets: Rows128, first: int, domain: int) -> list[Packed]:
    """Keeps one bit of each hash, packed, shape (n / 8,): transfers of bits."""
    words = hash_words(rows, first, domain, offsets, np.uint8)[:, 0]
    words &= np.uint8(1)
    return list(pack_bits(words))


def batches(number: int) -> list[int]:
    """Sizes of the batches of `number` transfers, each a multiple of 128; the last is filled up."""
    full, rest = divmod(number, BATCH)
    return [BATCH] * full + ([-(-rest // ROWS) * ROWS] if rest else [])


# -- random transfers --------------------------------------------------------------------------------------------------
async def send_random(
    session: Session, peer: str, seeds: SenderSeeds, number: int, keep: Keep = whole
) -> AsyncIterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The sender's part: both random messages of each transfer, batch by batch.

    Args:
        session: The lane to use.
        peer: The receiver.
        seeds: From `prepare_sending` with this peer.
        number: How many transfers; filled up to a multiple of 128.
        keep: What is kept of the 16-byte messages.

    Raises:
        MalformedMessage: The receiver's rows have another size.
        ProtocolViolation: The receiver's choices contradict each other; nothing of the batch has been used.
    """
    offsets = seeds.offsets(1)

    def hashed(told: Told) -> tuple[NDArray[Any], NDArray[Any]]:
        first = seeds.used
        zero, one = keep(seeds.expand(told), offsets, first, seeds.domain)
        return zero, one

    sizes, taken = batches(number), session.lane("taken")
    for index, size in enumerate(sizes):
        yield await session.compute(hashed, await hear_batch(session, peer, seeds.field_bits, size))  # <- 1
        if (index + 1) % WINDOW == 0 and index + 1 + WINDOW < len(sizes):
            await taken.send(peer, BatchesTaken())


async def receive_random(
    session: Session, peer: str, seeds: ReceiverSeeds, choices: Packed, keep: Keep = whole
) -> AsyncIterator[NDArray[Any]]:
    """The receiver's part: the chosen random message of each transfer, batch by batch.

    Args:
        session: The lane to use.
        peer: The sender.
        seeds: From `prepare_receiving` with this peer.
        choices: Packed choice bits, of a multiple of 128 transfers; that number is public.
        keep: What is kept of the 16-byte messages; the sender's own.
    """

    def hashed(part: Packed) -> tuple[Expanded, NDArray[Any]]:
        first = seeds.used
        batch = seeds.expand(part)
        return batch, keep(batch.rows, _NO_OFFSET, first, seeds.domain)[0]

    done, taken = 0, session.lane("taken")
    for index, size in enumerate(batches(len(choices) * 8)):
        if index >= 2 * WINDOW and index % WINDOW == 0:
            await taken.recv(peer, BatchesTaken)
        part = np.ascontiguousarray(choices[done : done + size // 8])
        batch, kept = await session.compute(hashed, part)
        await tell_batch(session, peer, batch)  # -> 1
        done += len(part)
        yield kept


def fill_up(bits: NDArray[np.uint8] | NDArray[np.bool_]) -> Packed:
    """Choice bits packed and filled up with zeros to whole batches' multiple of 128.

    Args:
        bits: Shape (n,), each 0 or 1.
    """
    packed = np.zeros(sum(batches(len(bits))) // 8, np.uint8)
    own = np.packbits(bits, bitorder="little")
    packed[: len(own)] = own
    return packed


# -- correlated transfers ----------------------------------------------------------------------------------------------
async def send_correlated(session: Session, peer: str, seeds: SenderSeeds, correlations: Words) -> Words:
    """The sender's part: a, where the receiver gets a + c·x over the words of x.

    Args:
        session: The lane to use.
        peer: The receiver.
        seeds: From `prepare_sending` with this peer.
        correlations: x, shape (n,), unsigned; n and the type are public.

    Returns:
        a, shape (n,) in the type of x: uniform to the receiver but for what it gets.
    """
    word = correlations.dtype.type
    shares = np.empty_like(correlations)
    rows = send_random(session, peer, seeds, len(correlations), lowest_word(word))
    async for part, (zero, one) in _numbered(rows, len(correlations)):
        size = part.stop - part.start
        shares[part] = zero[:size]
        await session.send_array(peer, EncryptedMessages, zero[:size] - one[:size] + correlations[part])  # -> 2
    return shares


async def receive_correlated(
    session: Session, peer: str, seeds: ReceiverSeeds, choices: NDArray[np.uint8], word: type[np.unsignedinteger[Any]]
) -> Words:
    """The receiver's part: a + c·x.

    Args:
        session: The lane to use.
        peer: The sender.
        seeds: From `prepare_receiving` with this peer.
        choices: c, shape (n,), each 0 or 1.
        word: The type of the sender's correlations.

    Returns:
        Shape (n,).

    Raises:
        MalformedMessage: The sender's corrections have another size.
    """
    rows = receive_random(session, peer, seeds, fill_up(choices), lowest_word(word))
    # All rows leave before the first correction is awaited, so that the number of batches costs no rounds.
    shares: Words = np.concatenate([kept async for kept in rows] or [np.empty(0, word)])[: len(choices)]
    for part in _parts(len(choices)):
        corrections = await session.recv_array(peer, EncryptedMessages, word, shares[part].shape)  # <- 2
        shares[part] += corrections * choices[part].astype(word)
    return shares


# -- chosen messages ---------------------------------------------------------------------------------------------------
async def send_chosen(session: Session, peer: str, seeds: SenderSeeds, zero: Packed, one: Packed) -> None:
    """The sender's part: of each pair of messages the receiver gets one.

    Args:
        session: The lane to use.
        peer: The receiver.
        seeds: From `prepare_sending` with this peer.
        zero: Messages for choice 0, shape (n, length), 1 to 16 bytes each; n and length are public.
        one: Messages for choice 1, of the same shape.
    """
    number, length = _check_messages(zero.shape, one.shape)
    rows = send_random(session, peer, seeds, number)
    async for part, pads in _numbered(rows, number):
        pads_zero, pads_one = (_bytes(each[: part.stop - part.start], length) for each in pads)
        encrypted = np.stack([zero[part] ^ pads_zero, one[part] ^ pads_one])
        await session.send_array(peer, EncryptedMessages, encrypted)  # -> 2


async def receive_chosen(
    session: Session, peer: str, seeds: ReceiverSeeds, choices: NDArray[np.uint8], length: int
) -> Packed:
    """The receiver's part: the chosen messages.

    Args:
        session: The lane to use.
        peer: The sender.
        seeds: From `prepare_receiving` with this peer.
        choices: Shape (n,), each 0 or 1.
        length: Bytes of a message.

    Returns:
        Shape (n, length).

    Raises:
        MalformedMessage: The sender's messages have another size.
    """
    number, length = _check_messages((len(choices), length))
    rows = receive_random(session, peer, seeds, fill_up(choices))
    pads = [_bytes(kept, length).copy() async for kept in rows]
    chosen: Packed = np.concatenate(pads or [np.empty((0, length), np.uint8)])[:number]
    for part in _parts(number):
        shape = (2, *chosen[part].shape)
        encrypted = await session.recv_array(peer, EncryptedMessages, np.uint8, shape)  # <- 2
        chosen[part] ^= np.where(choices[part, None] == 1, encrypted[1], encrypted[0])
    return chosen


def _parts(number: int) -> list[slice]:
    """The transfers of each batch, without those that only fill up the last."""
    return [slice(start, min(start + BATCH, number)) for start in range(0, number, BATCH)]


async def _numbered(rows: AsyncIterator[T], number: int) -> AsyncIterator[tuple[slice, T]]:
    parts = iter(_parts(number))
    async for batch in rows:
        yield next(parts), batch


def _bytes(rows: Rows128, length: int) -> Packed:
    return rows.view(np.uint8).reshape(-1, ROW_BYTES)[:, :length]


def _check_messages(*shapes: tuple[int, ...]) -> tuple[int, int]:
    number, length = shapes[0]
    if len(set(shapes)) != 1 or not 1 <= length <= ROW_BYTES:
        raise ValueError(f"messages of an extension have 1 to {ROW_BYTES} bytes and one shape, not {shapes}")
    return number, length
