"""Beneš networks: any permutation of 2^m rows as 2·m − 1 layers of switches, each of which swaps two rows or not.

The first layer deals every pair of inputs to the two halves of a smaller network each, the last one takes every pair of
outputs from them. Which half a row goes through is a choice of two for every output: the two outputs of a switch, and
the two inputs of a switch, go through different ones. These constraints are cycles of even length, so a walk of two
constraints at a time visits every other output of a cycle, which all go the same way.

Source: Beneš, "Mathematical Theory of Connecting Networks and Telephone Traffic", 1965, chapter 3; Waksman, "A
permutation network", JACM 15(1), 1968 (choosing the switches).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.int64]
Switches = NDArray[np.bool_]
Rows = NDArray[Any]


def network_size(rows: int) -> int:
    """Rows of the smallest network for so many, a power of two, at least 1."""
    return 1 << max(rows - 1, 0).bit_length()


def layer_count(size: int) -> int:
    """Layers of a network of so many rows."""
    return max(2 * (size.bit_length() - 1) - 1, 0)


def switches_for(order: Order) -> list[Switches]:
    """The switches that bring row order[i] to place i.

    Args:
        order: A permutation of 0 … n − 1, n a power of two.

    Returns:
        By layer whether each pair is swapped, shape (n / 2,).
    """
    size = len(order)
    first, last = list[Switches](), list[Switches]()
    blocks = order[None]  # shape (blocks, rows of a block)
    while blocks.shape[1] > 2:
        taken, given, blocks = _outer_layers(blocks)
        first.append(taken.reshape(-1))
        last.append(given.reshape(-1))
    middle = [blocks[:, 0].astype(np.bool_)] if size > 1 else []
    return [*first, *middle, *reversed(last)]


def pass_layers(rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Rows on their way through the network, layer by layer.

    Yields:
        The upper and the lower rows of all pairs, shape (n / 2, …) each, as they come to the layer. A caller that
        iterates puts into them what leaves the layer. After the last one, both are what comes out at even and odd
        places.

    Args:
        rows: Shape (n, …), n a power of two; they are changed.
    """
    size = len(rows)
    depth = size.bit_length() - 1
    for layer in range(layer_count(size)):
        blocks = 1 << min(layer, layer_count(size) - 1 - layer)
        if layer >= depth:
            rows[...] = _woven(rows, blocks)
        yield rows[0::2], rows[1::2]
        if layer < depth - 1:
            rows[...] = _dealt(rows, blocks)


def _outer_layers(blocks: Order) -> tuple[Switches, Switches, Order]:
    """First and last layer of networks of n rows each, and the permutations of both halves that are left."""
    number, size = blocks.shape
    offsets = size * np.arange(number, dtype=np.int64)[:, None]
    order = (blocks + offsets).reshape(-1)
    where = np.empty_like(order)
    where[order] = np.arange(len(order))
    lower = _ways(where[order ^ 1] ^ 1)
    given = lower[0::2]
    taken = lower[where[0::2]]
    # In a block half-size place j takes what the j-th pair of outputs gets from that half.
    pairs = np.arange(0, len(order), 2)
    halves = [order[pairs + (given ^ half)] // 2 - (np.repeat(offsets[:, 0], size // 2) // 2) for half in (0, 1)]
    left = np.stack([half.reshape(number, size // 2) for half in halves], axis=1).reshape(2 * number, size // 2)
    return taken.astype(np.bool_), given.astype(np.bool_), left


def _ways(step: Order) -> NDArray[np.int64]:
    """For each output 0 or 1, which half its row goes through: equal along the cycles of a step, unequal in a pair."""
    least, ahead = np.arange(len(step)), step
    for _ in range(len(step).bit_length()):
        least = np.minimum(least, least[ahead])
        ahead = ahead[ahead]
    return np.asarray(least > least[np.arange(len(step)) ^ 1], np.int64)


def _dealt(rows: Rows, blocks: int) -> Rows:
    """Of each block the even rows, then the odd ones."""
    shape = rows.shape[1:]
    cut = rows.reshape(blocks, -1, 2, *shape)
    return np.ascontiguousarray(np.moveaxis(cut, 2, 1)).reshape(rows.shape)


def _woven(rows: Rows, blocks: int) -> Rows:
    """The inverse of `_dealt`."""
    shape = rows.shape[1:]
    cut = rows.reshape(blocks, 2, -1, *shape)
    return np.ascontiguousarray(np.moveaxis(cut, 1, 2)).reshape(rows.shape)
