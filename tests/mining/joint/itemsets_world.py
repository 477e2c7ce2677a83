"""Rows of several parties that find itemsets together, and what they have found."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from mining.joint.parameters import JointItemsets
from tests.mining.joint.oracle import Rows


def datasets(items: Sequence[str]) -> st.SearchStrategy[dict[str, Rows]]:
    """The rows of two to five parties, of which one at least has a row."""
    rows = st.lists(st.lists(st.sampled_from(items), max_size=6), max_size=8)
    parties = st.lists(rows, min_size=2, max_size=5).filter(any)
    return parties.map(lambda drawn: {f"p{place}": party for place, party in enumerate(drawn)})


def supports(result: JointItemsets) -> dict[frozenset[str], int]:
    """By itemset."""
    assert result.itemsets is not None
    return {frozenset(itemset): count for itemset, count in result.itemsets.rows()}
