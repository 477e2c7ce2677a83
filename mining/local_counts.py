"""What joint mining counts in a party's own rows: by bitmaps in memory, by kernels where the rows lie in blocks."""

from __future__ import annotations

from mining import miner
from mining.counting import LevelCounter, SupportCounter
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.partitioned import itemsets
from mining.partitioned.counter import PartitionedCounter


def counter_of(rows: Rows) -> LevelCounter:
    """A counter of candidates over some rows, on the public dictionary of frequent items."""
    return SupportCounter(rows) if isinstance(rows, Transactions) else PartitionedCounter(rows)


def frequent_itemsets(
    rows: Rows, min_count: int, *, max_length: int | None, limit: int, max_candidates: int = miner.MOST_SETS
) -> Itemsets:
    """All itemsets that at least `min_count` rows hold; see `mining.miner.frequent_itemsets`.

    Raises:
        EnumerationLimit: There are more itemsets than `limit`, or more candidates of one length than `max_candidates`.
    """
    if isinstance(rows, Transactions):
        return miner.frequent_itemsets(
            rows, min_count, max_length=max_length, limit=limit, max_candidates=max_candidates
        )
    return itemsets.frequent_itemsets(
        rows, min_count, max_length=max_length, limit=limit, max_candidates=max_candidates
    )
