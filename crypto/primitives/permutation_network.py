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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.integer[Any]]
Switches = NDArray[np.uint8]
"""Of each pair of a layer a bit, whether it is swapped: eight to a byte, the highest first."""
Rows = NDArray[Any]
Places = NDArray[np.uint32]
AT_ONCE: Final = 1 << 18  # rows that are looked up in one piece: numpy makes indices of eight bytes


def network_size(rows: int) -> int:
    """Rows of the smallest network for so many, a power of two, at least 1."""
    return 1 << max(rows - 1, 0).bit_length()


def layer_count(size: int) -> int:
    """Layers of a network of so many rows."""
    return max(2 * (size.bit_length() - 1) - 1, 0)


def switches_for(order: Order) -> list[Switches]:
    """The switches that bring row order[i] to place i.

    While it works it takes about 16 bytes of memory for each row, and what comes out 1/16 for each layer. An order of
    32-bit numbers to which nobody else refers is among these, and given up on the way.

    Args:
        order: A permutation of 0 … n − 1, n a power of two below 2^32.

    Returns:
        By layer, which pairs are swapped.
    """
    places, networks = np.asarray(order, np.uint32), 1
    del order
    first, last = list[Switches](), list[Switches]()
    while len(places) > 2 * networks:
        taken, given, places = _outer_layers(places, networks)
        networks *= 2
        first.append(taken)
        last.append(given)
    middle = [np.packbits(places[0::2] & 1 == 1)] if len(places) > 1 else []
    return [*first, *middle, *reversed(last)]


def are_swapped(switches: Switches, start: int, stop: int) -> NDArray[np.uint8]:
    """Of some pairs of a layer whether they are swapped, 0 or 1, shape (stop − start,)."""
    first = start // 8
    return np.unpackbits(switches[first : -(-stop // 8)])[start - 8 * first : stop - 8 * first]


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


def _outer_layers(order: Places, networks: int) -> tuple[Switches, Switches, Places]:
    """First and last layer of networks of n rows each, and the permutations of both halves of each that are left.

    Args:
        order: By place the row that comes there, those of one network after those of another.
        networks: How many there are.
    """
    size, number = len(order) // networks, len(order)
    ahead = np.empty_like(order)
    where = _inverse(order)
    for part in _pieces(number):
        ahead[part] = where[order[part] ^ 1] ^ 1
    del where  # which takes a quarter of the memory, and is soon found again
    lower = _ways(ahead, size)
    del ahead
    given, where = lower[0::2], _inverse(order)
    taken = np.empty(number // 2, np.bool_)
    for part in _pieces(number // 2):
        taken[part] = lower[where[2 * part.start : 2 * part.stop : 2]]
    del where
    # In a half its place j takes what the j-th pair of outputs of its network gets from there.
    left = np.empty((networks, 2, size // 2), np.uint32)
    begins = np.arange(0, number, size, dtype=np.uint32)[:, None]  # of the networks
    for half in (0, 1):
        rows = np.where(given == (half == 1), order[0::2], order[1::2]).reshape(networks, size // 2)
        rows -= begins
        rows >>= 1
        rows += begins
        np.add(rows, np.uint32(half * size // 2), out=left[:, half])
    return np.packbits(taken), np.packbits(given), left.reshape(-1)


def _ways(ahead: Places, size: int) -> NDArray[np.bool_]:
    """For each output which half its row goes through: equal along the cycles of a step, unequal in a pair.

    Args:
        ahead: The step, from output to output of one network; changed here.
        size: Of each network.
    """
    least, further = np.arange(len(ahead), dtype=np.uint32), np.empty_like(ahead)
    for _ in range(size.bit_length() - 1):
        for part in _pieces(len(ahead)):
            steps = ahead[part]
            # Some of these are already the least of more outputs, all of the same cycle.
            np.minimum(least[part], least[steps], out=least[part])
            further[part] = ahead[steps]
        ahead, further = further, ahead
    del ahead, further
    lower = np.empty(len(least), np.bool_)
    np.greater(least[0::2], least[1::2], out=lower[0::2])
    np.logical_not(lower[0::2], out=lower[1::2])
    return lower


def _inverse(order: Places) -> Places:
    """By row the place where it comes."""
    where = np.empty_like(order)
    for part in _pieces(len(order)):
        where[order[part]] = np.arange(part.start, part.stop, dtype=np.uint32)
    return where


def _pieces(number: int) -> Iterator[slice]:
    for start in range(0, number, AT_ONCE):
        yield slice(start, min(start + AT_ONCE, number))


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
