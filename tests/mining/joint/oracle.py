"""The pooled result by brute force over frozensets: obviously right, for small data only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

Rows = Sequence[Sequence[str]]


def least_count(min_support: int | Decimal, n_rows: int) -> int:
    """⌈s·N⌉ in rationals, or the count itself."""
    return min_support if isinstance(min_support, int) else max(1, math.ceil(Fraction(min_support) * n_rows))


def pooled_supports(
    data: Mapping[str, Rows], min_support: int | Decimal, max_length: int | None = None
) -> dict[frozenset[str], int]:
    """Support of every frequent itemset of all parties' rows together."""
    rows = [frozenset(row) for party in data.values() for row in party]
    least = least_count(min_support, len(rows))
    found: dict[frozenset[str], int] = {}
    length = 1
    candidates = {frozenset([item]) for row in rows for item in row}
    while candidates and (max_length is None or length <= max_length):
        counts = {c: sum(c <= row for row in rows) for c in candidates}
        level = {c: n for c, n in counts.items() if n >= least}
        found |= level
        items = sorted({item for c in level for item in c})
        length += 1
        candidates = {
            c | {item}
            for c in level
            for item in items
            if item not in c and all(frozenset(s) in level for s in combinations(c | {item}, length - 1))
        }
    return found
