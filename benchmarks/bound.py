"""What a joint job must cost at least: arithmetic on sizes and on the speed of this machine's primitives."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np

from benchmarks.measure import best, cores
from crypto.primitives import embedding
from crypto.primitives.commutative import CommutativeKey
from crypto.primitives.randomness import Randomness
from crypto.protocols.union.lists import EPSILON_COMMON, common_fakes, length_class, spare_for_common_fakes
from crypto.protocols.union.size_classes import SETS
from mining.data.transactions import Transactions
from mining.thresholds import local_threshold, minimum_count

SESSION_S = 0.7  # process start, connections, proposal, result files: allowed on top of the work itself


@dataclass(frozen=True)
class Primitives:
    """Seconds of one operation on one core.

    Attributes:
        multiply_s: A scalar multiplication of ristretto255.
        embed_s: What the embedding of a block adds to its first multiplication.
        keystream_gb_s: Random bytes, in GB/s.
    """

    multiply_s: float
    embed_s: float
    keystream_gb_s: float


@cache
def primitives(batch: int = 2000) -> Primitives:
    """Measured on this machine now, in one thread."""
    random = Randomness.from_os()
    key = CommutativeKey.generate(random)

    blocks = np.frombuffer(random.bytes(batch * embedding.BLOCK_BYTES), np.uint8).reshape(batch, -1)
    points = key.encrypt_blocks(blocks)
    words = 1 << 23
    multiply_s = best(lambda: key.encrypt(points), 3) / batch
    return Primitives(
        multiply_s=multiply_s,
        embed_s=best(lambda: key.encrypt_blocks(blocks), 3) / batch - multiply_s,
        keystream_gb_s=words * 8 / best(lambda: random.uint64(words), 3) / 1e9,
    )


def union_s(parties: int, listed: int, different: int) -> float:
    """(n·(Σ|S_i| + |U|)·t_mul + Σ|S_i|·t_embed) / cores, fakes included in both sizes.

    Args:
        parties: n.
        listed: Blocks of all lists.
        different: Different blocks among them.
    """
    speed = primitives()
    return (parties * (listed + different) * speed.multiply_s + listed * speed.embed_s) / cores()


def list_length(elements: int, parties: int) -> int:
    """The length of a list without a job's bound: the next power of two, and room for common fakes."""
    return SETS.rounded(elements) + spare_for_common_fakes(parties, common_fakes(EPSILON_COMMON))


def items_union_s(slices: list[Transactions], support: Decimal) -> float:
    """The group operations of the union of locally frequent items that a joint job begins with."""
    n_rows, parties = sum(data.n_rows for data in slices), len(slices)
    least = minimum_count(support, n_rows)
    names: set[str] = set()
    sizes = list[int]()
    width = 1
    for data in slices:
        threshold = local_threshold(support, data.n_rows, least, parties, Decimal("0.8"), n_rows)
        own = np.flatnonzero(data.item_counts() >= threshold)
        names.update(data.items[index] for index in own)
        width = max(width, length_class([data.items[index].encode() for index in own]))
        sizes.append(len(own))
    listed = parties * list_length(max(sizes), parties)  # all lists are as long as the longest
    return union_s(parties, listed * width, (len(names) + listed - sum(sizes)) * width)
