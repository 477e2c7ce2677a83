"""Which itemsets are counted next, from what is public alone: noisy counts of those that are one item shorter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mining.candidates import Candidates
from mining.joint.tally import Counts
from mining.lattice import SetKeys, Sets, find


@dataclass(frozen=True, eq=False, slots=True)
class NoisyLevel:
    """Itemsets of one length that go on, with their noisy counts.

    Attributes:
        sets: Shape (m, k), lexicographically sorted.
        counts: Shape (m,).
        sigma: The standard deviation of the noise in each.
        lost: Shape (m,), by how much each count may be too low, since records do not count to all that they hold.
    """

    sets: Sets
    counts: Counts
    sigma: float
    lost: NDArray[np.float64]


def expected_supports(candidates: Candidates, levels: Sequence[NoisyLevel], n_rows: int) -> NDArray[np.float64]:
    """In how many records each candidate is expected, by what is public: shape (c,).

    X ∪ {a, b} is expected in c(X ∪ {a})·c(X ∪ {b})/c(X) records, as if a and b met by chance among those with X. A
    record that holds too many candidates keeps those first of which most is expected, of equal ones the first. So what
    is frequent keeps nearly all its records, and what is dropped would hardly have come to be.

    Args:
        candidates: Joined from the last of the levels.
        levels: Those of 1, 2, … items so far.
        n_rows: The noisy number of rows, for X = ∅.

    """
    last = levels[-1]
    counts = np.maximum(last.counts, 1).astype(np.float64)
    common = np.full(len(candidates), float(n_rows))
    if len(levels) > 1:
        before = levels[-2]
        keys = SetKeys(before.sets)
        at = find(keys.of(before.sets), keys.of(candidates.sets[:, :-2]))
        common = np.maximum(before.counts[at], 1).astype(np.float64)
    expected: NDArray[np.float64] = counts[candidates.left] * counts[candidates.right] / common
    return expected


def kth_largest(levels: Sequence[NoisyLevel], k: int) -> float | None:
    """The k-th largest of all noisy counts so far; None where there are fewer."""
    counts = np.concatenate([np.empty(0, np.int64), *(level.counts for level in levels)])
    return float(np.partition(counts, len(counts) - k)[len(counts) - k]) if len(counts) >= k else None
