"""Work on many ciphertexts in pieces, on several cores.

`Workers` is what an executor (`link.executor`) and a session have in common. Multiplying in Python holds the
interpreter's lock, so threads share one core; a `ProcessExecutor` uses them all. Pieces carry what they need and no
more: keys of random streams are drawn for each piece, streams themselves never travel.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from gmpy2 import mpz

from crypto.primitives.paillier.ciphertexts import bytes_of, values_of
from crypto.primitives.paillier.zeros import ZeroSource
from crypto.primitives.randomness import KEY_BYTES, Randomness
from link.randomness import RandomStream

T = TypeVar("T")
R = TypeVar("R")

PIECE: Final = 512  # encryptions of zero in a piece of work: about a fifth of a second
_AHEAD: Final = 2  # pieces that wait beside those that are worked on

Progress = Callable[[int, int], object]


class Workers(Protocol):
    """Maps kernels over pieces of work."""

    @property
    def workers(self) -> int:
        """How many pieces are worked on at once."""

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """`[kernel(c) for c in chunks]`, in order."""


async def in_order(workers: Workers, kernel: Callable[[T], R], pieces: AsyncIterable[T]) -> AsyncGenerator[R, None]:
    """The results of pieces as they come, in order, with few under way at once: memory stays bounded.

    Args:
        workers: Where the kernel runs.
        kernel: A function of a module, or a `partial` of one, so that it can be sent to a process.
        pieces: Taken only as fast as they are worked on.
    """
    under_way: deque[asyncio.Future[Sequence[R]]] = deque()
    try:
        async for piece in pieces:
            under_way.append(asyncio.ensure_future(workers.map(kernel, [piece])))
            if len(under_way) >= workers.workers + _AHEAD:
                (result,) = await under_way.popleft()
                yield result
        while under_way:
            (result,) = await under_way.popleft()
            yield result
    finally:
        for future in under_way:
            future.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


@dataclass(frozen=True, repr=False)
class _ZerosWanted:
    """A piece of `make_zeros`."""

    source: ZeroSource
    count: int
    stream_key: bytes


async def make_zeros(
    source: ZeroSource, count: int, random: RandomStream, workers: Workers
) -> AsyncGenerator[list[mpz], None]:
    """`count` fresh encryptions of zero, piece by piece.

    Args:
        source: A way to make them.
        count: How many.
        random: Randomness used for nothing else.
        workers: Where they are made.
    """

    async def pieces() -> AsyncIterator[_ZerosWanted]:
        for start in range(0, count, PIECE):
            yield _ZerosWanted(source, min(PIECE, count - start), random.bytes(KEY_BYTES))

    async for made in in_order(workers, _make, pieces()):
        yield values_of(source.key, made)


def _make(wanted: _ZerosWanted) -> bytes:
    made = wanted.source.make(wanted.count, Randomness.from_key(wanted.stream_key))
    return bytes_of(wanted.source.key, made)


def no_progress(done: int, total: int) -> None:
    """Reports to nobody."""
