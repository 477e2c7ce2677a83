"""Pieces in which long streams of bytes go."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES: Final = 1 << 20  # the sweet spot of gRPC


def view(values: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return values.reshape(-1).view(np.uint8).data


def is_whole(piece: bytes | memoryview) -> bool:
    """Whether a piece has the size of all but the last one of an array."""
    return len(piece) == CHUNK_BYTES


def chunks(values: NDArray[Any]) -> Iterable[memoryview]:
    """The bytes of an array in pieces of `CHUNK_BYTES`, without a copy; at least one, perhaps empty."""
    whole = view(np.ascontiguousarray(values))
    for start in range(0, max(len(whole), 1), CHUNK_BYTES):
        yield whole[start : start + CHUNK_BYTES]


async def chunks_of_pieces(
    pieces: AsyncIterable[NDArray[Any]], number: int, what: str
) -> AsyncIterator[tuple[bytes, bool]]:
    """The same for an array that comes in pieces.

    Args:
        pieces: Arrays of values, whose first axes count `number` values together.
        number: How many values these are.
        what: They are.

    Yields:
        A chunk, and whether it is the last one.

    Raises:
        ValueError: There are more values, or fewer; the last chunk has not come then.
    """
    waiting, counted = bytearray(), 0
    async for piece in pieces:
        counted += len(piece)
        waiting += view(np.ascontiguousarray(piece))
        while len(waiting) > CHUNK_BYTES:
            chunk = bytes(memoryview(waiting)[:CHUNK_BYTES])
            del waiting[:CHUNK_BYTES]
            yield chunk, False
    if counted != number:
        raise ValueError(f"{number} values of '{what}' were announced, and there are {counted}")
    yield bytes(waiting), True


async def rows_of_chunks(chunked: AsyncIterable[bytes | memoryview], width: int) -> AsyncIterator[NDArray[np.uint8]]:
    """Rows of `width` bytes that came in chunks."""
    rest = b""
    async for chunk in chunked:
        data = rest + chunk
        whole = len(data) // width
        yield np.frombuffer(data, np.uint8, whole * width).reshape(whole, width)
        rest = data[whole * width :]
