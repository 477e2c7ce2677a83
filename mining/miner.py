"""All frequent itemsets of one party's rows, by the algorithm that fits their density."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from math import comb

import numpy as np
from numpy.typing import NDArray

from mining import apriori, eclat
from mining.counting import SupportCounter
from mining.data.items.bitmaps import pack
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.pairs import count_along_columns, frequent_pairs, pairs_at, prefer_rows

__all__ = ["EnumerationLimit", "frequent_itemsets"]

# What this machine is trusted with when the caller names no limit: so many itemsets, or candidates of one length,
# take about a gigabyte.
MOST_SETS = 1 << 24
# Depth-first search needs a table of item pairs.
_MOST_ITEMS_DEPTH_FIRST = 1 << 14
_DENSE = 1 / 50
_MOST_GREEDY_STEPS = 512


def frequent_itemsets(
    transactions: Transactions,
    min_count: int,
    *,
    max_length: int | None = None,
    limit: int | None = None,
    max_candidates: int = MOST_SETS,
    items: Iterable[str] | None = None,
) -> Itemsets:
    """Mine all itemsets that at least `min_count` transactions hold.

    Args:
        transactions: The rows.
        min_count: Least number of rows, at least 1.
        max_length: Longest itemset wanted; by default any.
        limit: Most itemsets wanted; by default what memory allows.
        max_candidates: Most candidates of one length that are held at a time; by default what memory allows.
        items: The only items to look at; by default all.

    Returns:
        The itemsets, lexicographically sorted by position in their dictionary, which holds the frequent items in
        the order of the transactions' dictionary.

    Raises:
        EnumerationLimit: There are more itemsets than `limit`, or more candidates than `max_candidates`.
    """
    if min_count < 1:
        raise ValueError("min_count must be at least 1")
    most = MOST_SETS if limit is None else limit
    longest = transactions.n_items if max_length is None else max_length
    counts = transactions.item_counts()
    wanted = counts >= min_count
    if items is not None:
        chosen = set(items)
        wanted &= np.fromiter((item in chosen for item in transactions.items), bool, transactions.n_items)
    if longest < 1:
        wanted[:] = False
    target = np.where(wanted, np.cumsum(wanted) - 1, -1).astype(np.int32)
    kept = np.flatnonzero(wanted)
    dictionary = tuple(transactions.items[index] for index in kept)
    narrowed = transactions.renumbered(target, dictionary)
    if len(dictionary) > most or (min_count == 1 and _least(narrowed, longest) > most):
        raise EnumerationLimit(most)
    singles = np.arange(len(dictionary), dtype=np.int32)[:, None]
    levels = [(singles, counts[kept])]
    if longest > 1 and len(dictionary) > 1:
        try:
            levels += _longer(narrowed, min_count, longest, most, max_candidates)
        except EnumerationLimit:
            # What was left of the limit at some point is of no interest to the caller.
            raise EnumerationLimit(most) from None
    return Itemsets(dictionary, [level for level in levels if len(level[0])], transactions.n_rows)


def _least(transactions: Transactions, longest: int) -> int:
    """A lower bound on the number of itemsets that occur: the subsets of the longest row."""
    length = int(transactions.lengths.max(initial=0))
    return (1 << length) - 1 if longest >= length else n_subsets(length, longest)


def n_subsets(length: int, longest: int) -> int:
    """Number of non-empty subsets of at most `longest` items."""
    return sum(comb(length, k) for k in range(1, min(length, longest) + 1))


def _certain_to_exceed(transactions: Transactions, pairs: Sets, min_count: int, longest: int, most: int) -> bool:
    """Whether one frequent itemset is found, greedily, that alone has more subsets than allowed.

    This ends at once what would otherwise take minutes to grow beyond the limit. Only items that are frequent
    together with enough others can belong to such an itemset, so on most data there is nothing to try.
    """
    length = next((k for k in range(1, transactions.n_items + 1) if n_subsets(k, longest) > most), None)
    if length is None:
        return False
    likely = np.bincount(pairs.ravel(), minlength=transactions.n_items) >= length - 1
    if np.count_nonzero(likely) < length:
        return False
    target = np.where(likely, np.cumsum(likely) - 1, -1).astype(np.int32)
    narrowed = transactions.renumbered(target, tuple(compress(transactions.items, likely)))
    columns = pack(narrowed)
    common = np.full(columns.shape[1], ~np.uint64(0))
    reached = 0
    for item in np.argsort(-narrowed.item_counts(), kind="stable")[:_MOST_GREEDY_STEPS]:
        both = common & columns[item]
        if np.bitwise_count(both).sum() >= min_count:
            common = both
            reached += 1
    return reached >= length


def _longer(
    transactions: Transactions, min_count: int, longest: int, most: int, max_candidates: int
) -> list[tuple[Sets, NDArray[np.int64]]]:
    """Itemsets of two or more items; all items of the transactions are frequent."""
    if prefer_rows(transactions):
        pairs, counts = frequent_pairs(transactions, min_count)
        columns = None
    else:
        columns = pack(transactions)
        all_counts = count_along_columns(columns)
        frequent = np.flatnonzero(all_counts >= min_count)
        pairs, counts = pairs_at(frequent, transactions.n_items), all_counts[frequent]
    left = most - transactions.n_items - len(pairs)
    if left < 0:
        raise EnumerationLimit(most)
    levels = [(pairs, counts)]
    if longest > 2 and len(pairs) > 2:
        if _certain_to_exceed(transactions, pairs, min_count, longest, most):
            raise EnumerationLimit(most)
        if dense(transactions):
            columns = pack(transactions) if columns is None else columns
            levels += eclat.extend_pairs(pairs, columns, min_count, max_length=longest, limit=left)
        else:
            counter = SupportCounter(transactions)
            levels += apriori.extend_pairs(
                counter, pairs, min_count, max_length=longest, limit=left, max_candidates=max_candidates
            )
    return levels


def dense(transactions: Transactions) -> bool:
    """Whether most candidates can be expected to prove frequent, so that counting beats pruning."""
    if transactions.n_items > _MOST_ITEMS_DEPTH_FIRST:
        return False
    return transactions.n_occurrences >= _DENSE * transactions.n_items * transactions.n_rows
