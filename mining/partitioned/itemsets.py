"""All frequent itemsets of rows in blocks, level by level, within the same limits as `mining.miner`."""

from __future__ import annotations

import numpy as np

from mining import apriori
from mining.data.rows import Rows
from mining.itemsets import Itemsets, Level
from mining.limits import EnumerationLimit
from mining.miner import n_subsets
from mining.pairs import pairs_at
from mining.partitioned.counter import PartitionedCounter, pair_counts
from mining.partitioned.kernels import longest_row


def frequent_itemsets(
    rows: Rows, min_count: int, *, max_length: int | None, limit: int, max_candidates: int
) -> Itemsets:
    """Mine all itemsets that at least `min_count` rows hold.

    Args:
        rows: The rows.
        min_count: Least number of rows, at least 1.
        max_length: Longest itemset wanted; None: any.
        limit: Most itemsets wanted.
        max_candidates: Most candidates of one length that are held at a time.

    Returns:
        As `mining.miner.frequent_itemsets`.

    Raises:
        EnumerationLimit: There are more itemsets than `limit`, or more candidates than `max_candidates`.
    """
    longest = rows.n_items if max_length is None else max_length
    counts = rows.item_counts()
    kept = np.flatnonzero(counts >= min_count) if longest >= 1 else np.empty(0, np.int64)
    narrowed = rows.onto([rows.items[index] for index in kept])
    if narrowed.n_items > limit:
        raise EnumerationLimit(limit)
    if min_count == 1:  # each subset of a row is frequent
        length = max(narrowed.parts(longest_row))
        if n_subsets(length, min(length, longest)) > limit:
            raise EnumerationLimit(limit)
    levels = [(np.arange(len(kept), dtype=np.int32)[:, None], counts[kept])]
    if longest > 1 and len(kept) > 1:
        try:
            levels += _longer(narrowed, min_count, longest, limit - len(kept), max_candidates)
        except EnumerationLimit:
            raise EnumerationLimit(limit) from None
    return Itemsets(narrowed.items, [level for level in levels if len(level[0])], rows.n_rows)


def _longer(rows: Rows, min_count: int, longest: int, limit: int, max_candidates: int) -> list[Level]:
    found: list[Level] = []
    for start, counts in pair_counts(rows):
        kept = np.flatnonzero(counts >= min_count)
        found.append((pairs_at(kept, rows.n_items, start), counts[kept]))
        limit -= len(kept)
        if limit < 0:
            raise EnumerationLimit(limit)
    pairs = np.concatenate([sets for sets, _ in found])
    levels = [(pairs, np.concatenate([counts for _, counts in found]))]
    if longest > 2 and len(pairs) > 2:
        counter = PartitionedCounter(rows)
        levels += apriori.extend_pairs(
            counter, pairs, min_count, max_length=longest, limit=limit, max_candidates=max_candidates
        )
    return levels
