from __future__ import annotations

import fnmatch

from hypothesis import given
from hypothesis import strategies as st

from mining.data.transactions import Transactions, matching

ITEMS = st.text(alphabet="ab*[]?-.H", max_size=5)
PATTERNS = st.lists(st.text(alphabet="ab*[]?-!.H", min_size=1, max_size=5), max_size=4)
ROWS = st.lists(st.lists(ITEMS, max_size=5), max_size=8)


def rows_of(data: Transactions) -> list[set[str]]:
    return [{data.items[i] for i in data.indices[a:b]} for a, b in zip(data.offsets, data.offsets[1:], strict=False)]


@given(rows=ROWS, patterns=PATTERNS)
def test_the_items_that_match_are_gone_and_every_row_stays(rows: list[list[str]], patterns: list[str]) -> None:
    def kept(item: str) -> bool:
        return not any(fnmatch.fnmatchcase(item, pattern) for pattern in patterns)

    data = Transactions.from_rows(rows)
    left = data.without(patterns)
    assert rows_of(left) == [{item for item in row if kept(item)} for row in rows]
    assert left.items == tuple(filter(kept, data.items))
    assert matching(data.items, patterns) == set(data.items) - set(left.items)
    again = Transactions.from_rows(rows_of(left))
    assert (again.items, again.indices.tolist()) == (left.items, left.indices.tolist())


def test_nothing_to_remove_costs_nothing_and_case_matters() -> None:
    data = Transactions.from_rows([["hiv-test", "milk"], ["milk"]])
    assert data.without([]) is data
    assert data.without(["HIV*"]) is data
    assert data.without(["hiv*", "x"]).items == ("milk",)
