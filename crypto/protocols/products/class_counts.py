"""How many rows two parties' private classes have in common, for all pairs of classes at once: a contingency table.

Row t is in class a of one party, the writer, and in class b of the other, the chooser, who has at most as many: a leaf
costs more work than a word. For each row the writer makes a tree of seeds, with a leaf for every class of the chooser,
and each leaf gives a vector R_j of one word for every class of the writer:

    1. the chooser gets all leaves but that of its own class b: going down towards it, at each level the XOR of all
       nodes on the side that it leaves, by one transfer of one of two
    2. the writer sends c = e_a − Σ_j R_j, where e_a is 1 at its class a: to the chooser, who lacks R_b, a random vector
    3. the writer's share of the table grows by R_j at every class j of the chooser; the chooser's by −R_j at every
       class but b, and by c + Σ_{j ≠ b} R_j at b

At b the two add up to e_a, elsewhere to 0. Words are as short as the number of rows allows; the sums are lifted to 64
bits (`lifting`). `ot_matrix` does the same for any columns, with bytes for every pair of them.

Rounds: 3, and those of `lifting`.
Output: additive shares modulo 2^64 at both holders.
Bytes a row: for each of ⌈log2⌉ of the chooser's classes 32 and ⌈128/k⌉/8, and a word for each of the writer's classes.
Adversary: semi-honest, private against either holder. Leakage: how many rows and classes.

Source: Goldreich, Goldwasser and Micali, JACM 33(4), 1986 (the tree); Boyle, Couteau, Gilboa, Ishai, Kohl and Scholl,
"Efficient Pseudorandom Correlation Generators: Silent OT Extension and More", CRYPTO 2019, section 4 (all leaves but
one); Heath and Kolesnikov, "One Hot Garbling", CCS 2021 (the product of a vector with a position).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import Rows128
from crypto.primitives.correlation_robust import hash_rows
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.shared_products import word_for
from crypto.protocols.transfers.ot_extension import receive_chosen, send_chosen
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages

Classes = NDArray[np.int64]

_SEED_BYTES: Final = 16
BLOCK_BYTES: Final = 4 << 20  # of the seeds of one block's leaves: they stay near the cache
_SHIFT: Final = 40  # bits below the number of a hash in its tweak


async def class_counts(session: Session, parties: TwoParty, own: Classes, sizes: tuple[int, int]) -> AdditiveShare:
    """Shares of how many rows are in each class of the first holder and each of the second; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        own: This party's class of each row, shape (n,); n is public.
        sizes: How many classes the first and the second holder have, public, at least 1 each.

    Returns:
        One number a pair, the second's classes running fastest.

    Raises:
        ValueError: A class is out of range.
        MalformedMessage: The peer's messages have another size: its rows or classes differ.
    """
    mine = sizes[0 if parties.is_first else 1]
    if len(own) and not 0 <= own.min() <= own.max() < mine:
        raise ValueError(f"classes are numbers from 0 to {mine - 1}")
    first_writes = sizes[0] >= sizes[1]
    written, chosen = sizes if first_writes else sizes[::-1]
    if first_writes == parties.is_first:
        words = await _write(session, parties, own, written, chosen)
    else:
        words = await _choose(session, parties, own, written, chosen)
    by_second = words.T if first_writes else words
    return await lift_sums(session.lane("lift"), parties, np.ascontiguousarray(by_second).reshape(-1, 1))


async def _write(session: Session, parties: TwoParty, own: Classes, written: int, chosen: int) -> Words:
    """The writer's share, shape (the chooser's classes, its own)."""
    number, depth = len(own), (chosen - 1).bit_length()
    roots = np.frombuffer(session.randomness("seeds").bytes(number * _SEED_BYTES), np.uint64).reshape(-1, 2)
    sides = np.empty((2, depth, number, 2), np.uint64)
    total = np.zeros((chosen, written), word_for(number))
    corrections = np.zeros((number, written), total.dtype)

    def plant(part: slice) -> None:
        for level, nodes in enumerate(_levels(roots[part], depth)):
            sides[:, level, part] = _xor_of_sides(nodes)

    def count(part: slice) -> None:
        leaves = _tree(roots[part], depth)[:chosen]
        for place, vectors in _vectors(leaves, written, total.dtype):
            total[:, place] += vectors.sum(axis=1, dtype=total.dtype)
            corrections[part, place] -= vectors.sum(axis=0, dtype=total.dtype)
        corrections[np.arange(number)[part], own[part]] += total.dtype.type(1)

    blocks = _blocks(number, depth)
    await session.map(plant, blocks)
    lane = session.lane("seeds")
    zero, one = (each.reshape(-1, 2).view(np.uint8).reshape(-1, _SEED_BYTES) for each in sides)
    if depth and number:
        await send_chosen(lane, parties.peer, await parties.sending(lane), zero, one)  # <- 1, -> 2
    for part in blocks:
        await session.compute(count, part)
    await session.send_array(parties.peer, EncryptedMessages, corrections)  # -> 3
    return total


async def _choose(session: Session, parties: TwoParty, own: Classes, written: int, chosen: int) -> Words:
    """The chooser's share, shape (its classes, the writer's)."""
    number, depth = len(own), (chosen - 1).bit_length()
    left = (own[None] >> np.arange(depth)[::-1, None] & 1 ^ 1).astype(np.uint8)  # by level the side that is left
    lane, came = session.lane("seeds"), np.zeros((0, _SEED_BYTES), np.uint8)
    if depth and number:
        seeds = await parties.receiving(lane)
        came = await receive_chosen(lane, parties.peer, seeds, left.reshape(-1), _SEED_BYTES)  # -> 1, <- 2
    others = np.ascontiguousarray(came).view(np.uint64).reshape(depth, number, 2)
    total = np.zeros((chosen, written), word_for(number))
    corrections = await session.recv_array(parties.peer, EncryptedMessages, total.dtype, (number, written))  # <- 3

    def count(part: slice) -> None:
        leaves, classes = _punctured(own[part], left[:, part], others[:, part], depth)[:chosen], own[part]
        rows = np.arange(len(classes))
        for place, vectors in _vectors(leaves, written, total.dtype):
            vectors[classes, rows] = 0  # of the leaf that it lacks
            total[:, place] -= vectors.sum(axis=1, dtype=total.dtype)
            at_own = corrections[part, place] + vectors.sum(axis=0, dtype=total.dtype)
            np.add.at(total[:, place], classes, at_own)

    for part in _blocks(number, depth):
        await session.compute(count, part)
    return total


def _blocks(number: int, depth: int) -> list[slice]:
    """Rows whose trees are made at once."""
    step = max(1, BLOCK_BYTES // (_SEED_BYTES << depth))
    return [slice(start, min(start + step, number)) for start in range(0, number, step)]


def _children(nodes: Rows128, level: int) -> Rows128:
    """Both children of each node, next to each other: from shape (nodes, n, 2) to (2 · nodes, n, 2)."""
    flat = np.ascontiguousarray(nodes).reshape(-1, 2)
    both = [hash_rows(flat, (2 * level + side) << _SHIFT).reshape(nodes.shape) for side in (0, 1)]
    return np.stack(both, axis=1).reshape(-1, *nodes.shape[1:])


def _levels(roots: Rows128, depth: int) -> Iterator[Rows128]:
    """The nodes of each level below the roots."""
    nodes = roots[None]
    for level in range(depth):
        nodes = _children(nodes, level)
        yield nodes


def _tree(roots: Rows128, depth: int) -> Rows128:
    """The leaves, shape (2^depth, n, 2)."""
    nodes = roots[None]
    for level in range(depth):
        nodes = _children(nodes, level)
    return nodes


def _xor_of_sides(nodes: Rows128) -> Rows128:
    """The XOR of all nodes on either side of their parents, shape (2, n, 2)."""
    return np.stack([np.bitwise_xor.reduce(nodes[side::2], axis=0) for side in (0, 1)])


def _punctured(own: Classes, left: NDArray[np.uint8], others: Rows128, depth: int) -> Rows128:
    """All leaves but that of each row's own class, where anything may be; shape (2^depth, n, 2)."""
    number = len(own)
    rows = np.arange(number)
    nodes = np.zeros((1, number, 2), np.uint64)
    for level in range(depth):
        nodes = _children(nodes, level)
        path = own >> (depth - level)  # of the node on the way to the own leaf, whose children are not known
        nodes[2 * path, rows] = 0
        nodes[2 * path + 1, rows] = 0
        sides = _xor_of_sides(nodes)
        nodes[2 * path + left[level], rows] = others[level] ^ sides[left[level], rows]
    return nodes


def _vectors(leaves: Rows128, words: int, word: np.dtype[np.unsignedinteger]) -> Iterator[tuple[slice, Words]]:
    """What leaves give, some words at a time: shape (leaves, n, words)."""
    step = _SEED_BYTES // word.itemsize
    flat = np.ascontiguousarray(leaves).reshape(-1, 2)
    for block, start in enumerate(range(0, words, step)):
        place = slice(start, min(start + step, words))
        hashed = hash_rows(flat, (1 << 63) + (block << _SHIFT)).view(word)
        yield place, hashed.reshape(*leaves.shape[:2], step)[:, :, : place.stop - start]
