"""What a joint job must cost at least: arithmetic on sizes and on the speed of this machine's primitives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from math import comb

import numpy as np

from benchmarks.measure import best, cores
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import UNIFORM_BYTES, from_uniform_bytes
from crypto.primitives.randomness import Randomness
from crypto.protocols.union.prefix_costs import AskedBits
from jobs.plan.calibration import transfer_s
from jobs.plan.prices import AGREEMENT
from mining.data.transactions import Transactions
from mining.thresholds import local_threshold, minimum_count

SESSION_S = 0.7  # process start, connections, proposal, result files: allowed on top of the work itself


@dataclass(frozen=True)
class Primitives:
    """Seconds of one operation on one core.

    Attributes:
        multiply_s: A scalar multiplication of ristretto255.
        transfer_s: A random oblivious transfer of an extension, the sender's half and the receiver's.
        keystream_gb_s: Random bytes, in GB/s.
    """

    multiply_s: float
    transfer_s: float
    keystream_gb_s: float


@cache
def primitives(batch: int = 2000) -> Primitives:
    """Measured on this machine now, in one thread."""
    random = Randomness.from_os()
    key = CommutativeKey.generate(random)
    points = from_uniform_bytes(np.frombuffer(random.bytes(batch * UNIFORM_BYTES), np.uint8).reshape(batch, -1))
    words = 1 << 23
    return Primitives(
        multiply_s=best(lambda: key.encrypt(points), 3) / batch,
        transfer_s=transfer_s(),
        keystream_gb_s=words * 8 / best(lambda: random.uint64(words), 3) / 1e9,
    )


def prefix_union_s(parties: int, union: Collection[bytes]) -> float:
    """A transfer between every two parties for each bit, and their base transfers, over all cores.

    Args:
        parties: n.
        union: The elements of the union.
    """
    mean, longest = (round(sum(map(len, union)) / max(1, len(union))), max(map(len, union), default=0))
    bits, speed, pairs = AskedBits.expected(len(union), mean, longest).total, primitives(), comb(parties, 2)
    return pairs * (bits * speed.transfer_s + AGREEMENT * speed.multiply_s) / cores()


def items_union_s(slices: list[Transactions], support: Decimal) -> float:
    """The transfers of the union of locally frequent items that a joint job begins with."""
    n_rows, parties = sum(data.n_rows for data in slices), len(slices)
    least = minimum_count(support, n_rows)
    names: set[bytes] = set()
    for data in slices:
        threshold = local_threshold(support, data.n_rows, least, parties, Decimal("0.8"), n_rows)
        names.update(data.items[index].encode() for index in np.flatnonzero(data.item_counts() >= threshold))
    return prefix_union_s(parties, names)
