"""Layers of a commutative cipher on whole lists of points: off the event loop, several chunks at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.ristretto255 import Points, is_valid_points
from link.errors import MalformedMessage
from link.session import Session

Kernel = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
"""Rows of points or blocks in, as many rows out; releases the interpreter's lock or is short."""

KERNEL_POINTS: Final = 256  # about 10 ms: long against the hand-over between threads, short against a list
LEAST_POINTS: Final = 16  # of a chunk of a short list, so that it too is shared between the threads


async def apply(lane: Session, kernel: Kernel, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Maps a kernel over all rows.

    Args:
        lane: Whose executor works.
        kernel: What is done to the rows of every chunk.
        rows: Shape (m, x).

    Returns:
        Shape (m, y), in the same order.
    """
    size = min(KERNEL_POINTS, max(LEAST_POINTS, -(-len(rows) // lane.workers)))
    chunks = [rows[start : start + size] for start in range(0, len(rows), size)] or [rows]
    return np.concatenate(await lane.map(kernel, chunks))


async def apply_received(lane: Session, kernel: Kernel, received: Points, sender: str) -> NDArray[np.uint8]:
    """`apply` to what a peer sent: what is no group element is laid at its door.

    Raises:
        MalformedMessage: A row is not the canonical encoding of an element other than the identity.
    """
    try:
        return await apply(lane, kernel, received)
    except ValueError:
        raise MalformedMessage(
            f"{sender} sent a list with something that is no group element; check that node", party=sender
        ) from None


def checked(points: Points) -> Points:
    """The points themselves, for those that nothing else checks.

    Raises:
        ValueError: One is not the canonical encoding of an element other than the identity.
    """
    if not (is_valid_points(points) & points.any(axis=1)).all():
        raise ValueError("a row is not a valid group element other than the identity")
    return points
