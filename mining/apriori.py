"""Level-wise enumeration (Agrawal & Srikant 1994, figure 1) on packed bitmaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mining.candidates import join
from mining.counting import LevelCounter
from mining.lattice import Sets
from mining.limits import EnumerationLimit

Level = tuple[Sets, NDArray[np.int64]]


def extend_pairs(
    counter: LevelCounter, pairs: Sets, min_count: int, *, max_length: int, limit: int, max_candidates: int
) -> list[Level]:
    """Find the frequent itemsets of three or more items, one length after the other.

    Args:
        counter: Counter of the rows.
        pairs: All frequent pairs, lexicographically sorted.
        min_count: The least count of a frequent itemset.
        max_length: The longest itemset wanted.
        limit: The most itemsets wanted.
        max_candidates: The most candidates of one length that memory allows.

    Returns:
        For lengths 3, 4, ... the itemsets, lexicographically sorted, and their counts.

    Raises:
        EnumerationLimit: More than `limit` itemsets were found, or a length has too many candidates.
    """
    levels: list[Level] = []
    frequent = pairs
    counter.advance(pairs)
    n_found = 0
    while frequent.shape[1] < max_length and len(frequent) > frequent.shape[1]:
        candidates = join(frequent, max_candidates)
        counts = np.empty(len(candidates), np.int64)
        for start in range(0, len(candidates), counter.at_once):  # between two looks at the limit
            part = slice(start, start + counter.at_once)
            counts[part] = counter.count(candidates.select(part))
            n_found += int(np.count_nonzero(counts[part] >= min_count))
            if n_found > limit:
                raise EnumerationLimit(limit)
        kept = np.flatnonzero(counts >= min_count)
        if not len(kept):
            break
        frequent = candidates.sets[kept]
        counter.advance(frequent, candidates.left[kept])
        levels.append((frequent, counts[kept]))
    return levels
