"""Apriori in its textbook form."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

Itemset = frozenset[str]


def level_wise(rows: Iterable[Iterable[str]], min_count: int, max_length: int | None = None) -> dict[Itemset, int]:
    """Apriori as in Agrawal & Srikant 1994, figure 1, with one scan of the rows a level.

    Args:
        rows: Transactions; a repeated item counts once.
        min_count: Least count of a frequent itemset.
        max_length: Longest itemset wanted.

    Returns:
        The frequent itemsets and their counts.
    """
    transactions = [frozenset(row) for row in rows]
    candidates = {frozenset([item]) for row in transactions for item in row}
    frequent: dict[Itemset, int] = {}
    length = 1
    while candidates and (max_length is None or length <= max_length):
        counts = {candidate: sum(candidate <= row for row in transactions) for candidate in candidates}
        level = {candidate: count for candidate, count in counts.items() if count >= min_count}
        frequent |= level
        length += 1
        joined = {left | right for left, right in combinations(level, 2) if len(left | right) == length}
        candidates = {itemset for itemset in joined if all(itemset - {item} in level for item in itemset)}
    return frequent
