"""What a policy withholds leaves the rows where they are read, whatever a job says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mining.data.items.item_columns import Itemisation, item_columns
from mining.data.tables import Table
from mining.data.transactions import Transactions, matching
from party.config import DatasetSection
from party.data.sources import read_dataset

ITEMS = st.sampled_from(["hiv-1", "hiv-2", "bread", "tea", "h", "hivx"])


def table_of(columns: Mapping[str, Sequence[str]]) -> Table:
    return Table.of(list(columns), [pa.chunked_array([list(cells)]) for cells in columns.values()], ["id"], "here")


PATTERNS = st.lists(st.sampled_from(["hiv*", "hiv-[12]", "tea", "h", "?*"]), max_size=3)


@given(st.lists(st.lists(ITEMS, max_size=4), max_size=6), PATTERNS)
def test_rows_without_withheld_items_are_as_many(rows: list[list[str]], patterns: list[str]) -> None:
    data = Transactions.from_rows(rows).without(patterns)
    assert data.n_rows == len(rows)
    assert not matching([item for item, n in zip(data.items, data.item_counts(), strict=True) if n], patterns)


def test_a_dataset_of_transactions_is_read_without_them(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_text("bread hiv-1\nhiv-2\ntea\n")
    dataset = DatasetSection(name="b", kind="transactions", source=str(tmp_path / "b.dat"), format="basket")
    data = read_dataset(dataset, ("hiv*",))
    assert isinstance(data, Transactions)
    assert (data.items, data.n_rows) == (("bread", "tea"), 3)


def test_a_table_is_read_with_empty_cells_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,ward,dx\n1,7,hiv-1\n2,,flu\n3,7,hiv-2\n4,9,flu\n")
    dataset = DatasetSection(name="t", kind="table", source=str(tmp_path / "t.csv"), format="csv")
    data = read_dataset(dataset, ("dx=hiv*", "ward=9"))
    assert isinstance(data, Table)
    assert data.n_rows == 4
    assert item_columns(data, Itemisation()).items == ("dx=flu", "ward=7")
    assert data.digest() == table_of({"id": "1234", "ward": ["7", "", "7", ""], "dx": ["", "flu", "", "flu"]}).digest()


@given(st.lists(st.tuples(ITEMS, ITEMS), min_size=1, max_size=6), PATTERNS)
def test_of_a_table_what_is_left_is_what_excluding_leaves(rows: list[tuple[str, str]], patterns: list[str]) -> None:
    columns = {"id": [str(n) for n in range(len(rows))], "a": [x for x, _ in rows], "b": [y for _, y in rows]}
    given_patterns = [f"a={pattern}" for pattern in patterns] + patterns
    table = table_of(columns)
    withheld = item_columns(table.without(given_patterns), Itemisation())
    excluded = item_columns(table, Itemisation(exclude=tuple(given_patterns)))
    assert withheld.items == excluded.items
    assert (withheld.codes() == excluded.codes()).all()
