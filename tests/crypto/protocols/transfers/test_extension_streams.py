"""Ciphers that tasks share give each task the streams of its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from crypto.primitives.keystream import Keystream
from crypto.protocols.transfers import extension_seeds
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS, block_count
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.transfers.extension_streams import Block, Ciphers, Streams
from tests.crypto.protocols.transfers_world import told_of

KEYS = [[bytes([16 * block + weight]) * 16 for weight in range(4)] for block in range(3)]


def keys(block: int) -> list[bytes | None]:
    return [None, *KEYS[block][1:]]


def taken(streams: Streams, number: int, size: int) -> list[list[bytes]]:
    """Short parts all at once, long ones stream by stream."""
    if size < 48:
        return [[each.tobytes() for each in block[1:]] for block in streams.next_rows(number, 4, size)]
    with streams.going_on(number, size) as blocks:
        return [[stream.take(size) for stream in block if stream is not None] for block in blocks]


def whole(block: int, start: bytes, size: int) -> list[bytes]:
    return [Keystream(key, start).take(size) for key in KEYS[block][1:]]


@pytest.mark.parametrize("start", [bytes(16), b"\xff" * 16])  # the counter goes on from 0 after the highest
def test_a_task_goes_on_where_it_was_whoever_else_used_the_ciphers(start: bytes) -> None:
    one = Streams(Ciphers(keys), start)
    other = one.fork(bytes(range(16)))
    parts = [taken(one, 1, 32), taken(one, 3, 16)]
    assert taken(other, 2, 48) == [whole(block, bytes(range(16)), 48) for block in range(2)]
    parts.append(taken(one, 2, 64))
    for block, sizes in enumerate(([32, 16, 64], [16, 64], [16])):
        ends = np.cumsum([0, *sizes])
        expected = [[each[a:b] for each in whole(block, start, int(ends[-1]))] for a, b in pairwise(ends)]
        assert [part[block] for part in parts if block < len(part)] == expected


def test_tasks_at_once_have_ciphers_of_their_own() -> None:
    begun = list[int]()

    def counted(block: int) -> list[bytes | None]:
        begun.append(block)
        return keys(block)

    one = Streams(Ciphers(counted), bytes(16))
    other = one.fork(b"\1" * 16)
    for _ in range(2):
        with one.going_on(2, 16) as mine, other.going_on(1, 16) as theirs:
            assert not {id(stream) for block in mine for stream in block if stream} & {
                id(stream) for block in theirs for stream in block if stream
            }
    assert sorted(begun) in ([0, 0, 1], [0, 0, 1, 1])  # of the second task the second block, if it got the other set


def test_ciphers_of_a_task_that_failed_serve_no_other() -> None:
    streams, seen = Streams(Ciphers(keys), bytes(16)), list[Block]()

    def failing() -> None:
        with streams.going_on(1, 16) as blocks:
            seen.extend(blocks)
            raise MemoryError

    with pytest.raises(MemoryError):
        failing()
    with streams.going_on(1, 16) as blocks:
        assert blocks[0] is not seen[0]
        assert [stream.take(16) for stream in blocks[0] if stream] == [each[16:] for each in whole(0, bytes(16), 32)]


def test_forks_meet_whatever_order_they_go_on_in() -> None:
    generator = np.random.default_rng(5)
    seeds = generator.integers(0, 256, (43, 8, 16), np.uint8)
    delta = generator.bytes(17)
    receiver, sender = ReceiverSeeds(seeds), SenderSeeds(seeds, delta, "r")
    receivers = [receiver, *(receiver.fork(label) for label in (b"a", b"b"))]
    senders = [sender, *(sender.fork(label) for label in (b"a", b"b"))]
    choices = generator.integers(0, 256, (3, 2, 16), np.uint8)
    sent = {(task, turn): receivers[task].expand(choices[task, turn]) for turn in range(2) for task in (0, 1, 2)}
    for task in (2, 0, 1):
        for turn in range(2):
            batch = sent[task, turn]
            found = senders[task].expand(told_of(batch))
            chosen = np.unpackbits(choices[task, turn], bitorder="little").astype(bool)
            found[chosen] ^= sender.delta
            assert np.array_equal(found, batch.rows)


@pytest.mark.parametrize("field_bits", [1, 2, 3, 4])
@pytest.mark.parametrize("symbol_bits", [1, SYMBOL_BITS])
def test_short_parts_are_those_that_long_ones_begin_with(
    field_bits: int, symbol_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator, blocks = np.random.default_rng(6), block_count(field_bits, SYMBOL_BITS)
    seeds = generator.integers(0, 256, (blocks, 1 << field_bits, 16), np.uint8)
    delta = generator.bytes(-(-blocks * field_bits // 8))
    choices = generator.integers(0, 256, (2, symbol_bits, 48), np.uint8)
    found = []
    for longest in (0, 48 + 32):  # with the transfers that mask the check
        monkeypatch.setattr(extension_seeds, "SHORT_BYTES", longest)
        receiver, sender = ReceiverSeeds(seeds).fork(b"a"), SenderSeeds(seeds, delta, "r").fork(b"a")
        for part in choices:
            batch = receiver.expand(part)
            told = told_of(batch)
            found.append((*told[::2], batch.rows, sender.expand(told, symbol_bits)))
    for one, other in zip(found[:2], found[2:], strict=True):
        assert all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
