"""Plain mining of pooled rows with sets and dictionaries: slow, short, and obviously right."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

Itemset = frozenset[str]


def brute_force(rows: Iterable[Iterable[str]], min_count: int, max_length: int | None = None) -> dict[Itemset, int]:
    """Count every subset of every row; exponential in the longest row, so for small data only.

    Args:
        rows: Transactions; a repeated item counts once.
        min_count: Least count of a frequent itemset.
        max_length: Longest itemset wanted.

    Returns:
        The frequent itemsets and their counts.
    """
    counts: dict[Itemset, int] = {}
    for row in rows:
        items = sorted(set(row))
        longest = len(items) if max_length is None else min(max_length, len(items))
        for length in range(1, longest + 1):
            for subset in combinations(items, length):
                counts[frozenset(subset)] = counts.get(frozenset(subset), 0) + 1
    return {itemset: count for itemset, count in counts.items() if count >= min_count}
