"""Where the tasks of an oblivious-transfer extension are in the keystreams of its seeds.

A task of its own has streams of its own, the same keys from another counter. To set up a cipher takes longer than the
few bytes that a small job takes from it, so tasks share ciphers: whoever goes on borrows one of each seed and gives it
back. Positions only rise, and two tasks' counters lie far apart, so no byte serves twice.

Long parts are taken stream by stream (`going_on`), which are first set to where the task is. Short ones are taken of
all streams at once (`next_rows`); they are the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.keystream import CounterBlocks, Keystream

BLOCK_BYTES: Final = 16
_COUNTERS: Final = 1 << 8 * BLOCK_BYTES

T = TypeVar("T")

Block = list[Keystream | None]
"""A block's streams by weight; None at weight 0 where that stream is not known."""


class _Idle(Generic[T]):
    """Ciphers of all blocks, as many sets as tasks go on at once."""

    __slots__ = ("_begin", "_sets")

    def __init__(self, begin: Callable[[int], T]) -> None:
        self._begin = begin
        self._sets: list[list[T]] = []

    @contextmanager
    def borrowed(self, number: int) -> Iterator[list[T]]:
        """Those of the first blocks, begun where they are first wanted; nobody else has them meanwhile."""
        try:
            blocks = self._sets.pop()  # at once, whatever other threads do
        except IndexError:
            blocks = []
        blocks.extend(self._begin(block) for block in range(len(blocks), number))
        yield blocks[:number]
        self._sets.append(blocks)


class Ciphers:
    """Of all seeds.

    Args:
        keys: Those of a block's streams by weight, by the block's number; None where one is not known.
    """

    __slots__ = ("long", "short")

    def __init__(self, keys: Callable[[int], Sequence[bytes | None]]) -> None:
        self.long = _Idle(lambda block: _begun(keys(block)))
        self.short = _Idle(lambda block: CounterBlocks(keys(block)))


class Streams:
    """One task's: to be used by it alone.

    Args:
        ciphers: Of the seeds.
        start: The first counter block, 16 bytes.
    """

    __slots__ = ("_ciphers", "_start", "_used")

    def __init__(self, ciphers: Ciphers, start: bytes) -> None:
        self._ciphers, self._start = ciphers, int.from_bytes(start, "big")
        self._used: list[int] = []  # counters, by block of the extension

    def fork(self, start: bytes) -> Streams:
        """Another task's."""
        return Streams(self._ciphers, start)

    @contextmanager
    def going_on(self, number: int, size: int) -> Iterator[list[Block]]:
        """The streams of the first blocks, each at its next bytes.

        Args:
            number: How many blocks.
            size: How many bytes are taken from each stream, a multiple of 16.
        """
        with self._ciphers.long.borrowed(number) as blocks:
            for block, first in zip(blocks, self._going_on(number, size), strict=True):
                counter = first.to_bytes(BLOCK_BYTES, "big")
                for stream in block:
                    if stream is not None:
                        stream.go_to(counter)
            yield blocks

    def next_rows(self, number: int, streams: int, size: int) -> NDArray[np.uint8]:
        """The next bytes of all streams of the first blocks.

        Args:
            number: How many blocks.
            streams: How many streams a block has.
            size: How many bytes of each, a multiple of 16.

        Returns:
            Shape (number, streams, size); what belongs to an unknown stream means nothing.
        """
        rows = np.empty(number * streams * size + BLOCK_BYTES, np.uint8)  # the ciphers ask for a block of slack
        target, written = rows.data, (-1, b"")
        with self._ciphers.short.borrowed(number) as blocks:
            for place, (block, first) in enumerate(zip(blocks, self._going_on(number, size), strict=True)):
                if written[0] != first:  # nearly all are at the same counter
                    written = first, _counters(first, size)
                block.write(written[1], target[place * streams * size :])
        return rows[:-BLOCK_BYTES].reshape(number, streams, size)

    def _going_on(self, number: int, size: int) -> list[int]:
        """The first counters of each block's next bytes, which then count as used, so that none serves twice."""
        self._used.extend([0] * (number - len(self._used)))
        firsts = [(self._start + used) % _COUNTERS for used in self._used[:number]]
        for place in range(number):
            self._used[place] += -(-size // BLOCK_BYTES)
        return firsts


def _begun(keys: Sequence[bytes | None]) -> Block:
    """Streams at whatever counter."""
    begun = iter(Keystream.of_keys((key for key in keys if key is not None), bytes(BLOCK_BYTES)))
    return [None if key is None else next(begun) for key in keys]


def _counters(first: int, size: int) -> bytes:
    """Counter blocks from one on, `size` bytes together."""
    numbers = ((first + step) % _COUNTERS for step in range(size // BLOCK_BYTES))
    return b"".join(number.to_bytes(BLOCK_BYTES, "big") for number in numbers)
