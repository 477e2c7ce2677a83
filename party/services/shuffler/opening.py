"""Taking layers off: a few reports at once here, many in worker processes."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sealed import Piece, Rows, open_piece
from ldp.shuffling.onion import peel
from ldp.shuffling.route import Route
from link.executor import Executor

INLINE: Final = 32  # reports that are opened sooner than a worker is asked: 2 ms
PIECE: Final = 1024  # reports that a worker opens at a time: 60 ms


async def opened(
    sealed: Rows, route: Route, hop: int, key: bytes, executor: Executor
) -> tuple[Rows, NDArray[np.bool_]]:
    """As `ldp.shuffling.onion.peel`, without holding up the event loop.

    Args:
        sealed: Shape (n, `route.sealed_size(hop)`).
        route: Which way they go.
        hop: This node's.
        key: Its private key for the route.
        executor: The workers.
    """
    if len(sealed) <= INLINE:
        return peel(sealed, route, hop, key)
    context = route.context(hop)
    pieces = [
        Piece(sealed[start : start + PIECE].tobytes(), sealed.shape[1], key, context)
        for start in range(0, len(sealed), PIECE)
    ]
    results = await executor.map(open_piece, pieces)
    messages = np.frombuffer(b"".join(messages for messages, _ in results), np.uint8)
    readable = np.frombuffer(b"".join(flags for _, flags in results), np.bool_)
    return messages.reshape(len(sealed), -1), readable
