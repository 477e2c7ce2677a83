"""Where the tasks of an oblivious-transfer extension are in the keystreams of its seeds.

A task of its own has streams of its own, the same keys from another counter. To set up a cipher takes longer than the
few bytes that a small job takes from it, so tasks share ciphers: whoever goes on borrows one of each seed, sets it to
where it is, and gives it back. Positions only rise, and two tasks' counters lie far apart, so no byte serves twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from crypto.primitives.keystream import Keystream

BLOCK_BYTES: Final = 16
_COUNTERS: Final = 1 << 8 * BLOCK_BYTES

Block = list[Keystream | None]
"""A block's streams by weight; None at weight 0 where that stream is not known."""


class Ciphers:
    """Of all seeds, as many sets as tasks go on at once.

    Args:
        begin: The ciphers of a block, by its number; at whatever counter.
    """

    __slots__ = ("_begin", "_idle")

    def __init__(self, begin: Callable[[int], Block]) -> None:
        self._begin = begin
        self._idle: list[list[Block]] = []

    @contextmanager
    def borrowed(self, number: int) -> Iterator[list[Block]]:
        """Those of the first blocks, begun where they are first wanted; nobody else has them meanwhile."""
        try:
            blocks = self._idle.pop()  # at once, whatever other threads do
        except IndexError:
            blocks = []
        blocks.extend(self._begin(block) for block in range(len(blocks), number))
        yield blocks[:number]
        self._idle.append(blocks)


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
        self._used.extend([0] * (number - len(self._used)))
        with self._ciphers.borrowed(number) as blocks:
            for place, block in enumerate(blocks):
                counter = ((self._start + self._used[place]) % _COUNTERS).to_bytes(BLOCK_BYTES, "big")
                self._used[place] += -(-size // BLOCK_BYTES)  # before they are taken, so that none serves twice
                for stream in block:
                    if stream is not None:
                        stream.go_to(counter)
            yield blocks
