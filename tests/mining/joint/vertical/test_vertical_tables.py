"""Real tables, split by columns among parties who do not know all the same people: engines equal the joined table."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from mining.data.formats.table_readers import table_from_csv
from mining.data.items.item_columns import Itemisation, item_columns
from mining.joint.vertical.aligned import Aligned, pack_bits
from mining.joint.vertical.parameters import VerticalMining
from tests.examples import slowly
from tests.mining.joint.oracle import pooled_supports
from tests.mining.joint.vertical.vertical_world import ENGINES, Name, helper_of, mine_all, quick_keys

__all__ = ["quick_keys"]

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("quick_keys"), pytest.mark.turn(3)]

ROWS = 300
MIN_COUNT = 90


def decimals(*numbers: int) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, numbers))


@dataclass(frozen=True)
class Source:
    """A table of the reference data and the columns that are dealt to the parties, one after the other."""

    path: str
    separator: str
    columns: tuple[str, ...]
    cuts: dict[str, tuple[Decimal, ...]]

    def lines(self, folder: Path) -> list[dict[str, str]]:
        data = (folder / self.path).read_bytes()
        text = gzip.decompress(data).decode() if self.path.endswith(".gz") else data.decode()
        rows = csv.DictReader(io.StringIO(text), delimiter=self.separator)
        return [dict(row) for row, _ in zip(rows, range(ROWS), strict=False)]


TABLES = {
    "bank": Source(
        "tables/bank-full.csv.gz",
        ";",
        ("age", "job", "marital", "housing", "loan", "y"),
        {"age": decimals(30, 45, 60)},
    ),
    "mushroom": Source(
        "tables/mushroom_table.csv",
        ",",
        ("class", "odor", "gill-size", "bruises", "veil-color", "habitat"),
        {},
    ),
    "adult": Source(
        "adult/adult_45222.csv.gz",
        ",",
        ("age", "workclass", "sex", "hours-per-week", "race", "income"),
        {"age": decimals(30, 45, 60), "hours-per-week": decimals(35, 45)},
    ),
}


def own_columns(lines: list[dict[str, str]], names: tuple[str, ...]) -> bytes:
    """A party's file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue().encode()


@pytest.mark.parametrize("parties", slowly(["ab", "abc"], now=[1]))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TABLES)
def test_equals_mining_the_joined_table(name: str, engine: Name, parties: str, shared_data: Path) -> None:
    source, generator = TABLES[name], np.random.default_rng(7)
    lines = source.lines(shared_data)
    known = {party: generator.random(ROWS) < 0.95 for party in parties}
    data = {}
    for place, party in enumerate(parties):
        names = source.columns[place :: len(parties)]
        how = Itemisation({column: cuts for column, cuts in source.cuts.items() if column in names})
        table = table_from_csv(own_columns(lines, names), ",", (), Path(f"{party}.csv"))
        own = item_columns(table, how, np.where(known[party], np.arange(ROWS), -1))
        data[party] = Aligned(own, pack_bits(known[party]))
    common = np.logical_and.reduce(list(known.values()))
    columns = [each.columns for each in data.values()]
    joined = [
        [each.items[code] for each in columns for code in each.codes()[:, row] if code >= 0]
        for row in np.flatnonzero(common)
    ]
    helper = helper_of(engine, parties)
    task = VerticalMining(
        MIN_COUNT,
        tuple(parties),
        (parties[0], parties[1]),
        parties[0],
        "union",
        engine=engine,
        helper=helper,
        max_length=3,
    )
    expected = pooled_supports({"all": joined}, MIN_COUNT, 3)
    assert max(map(len, expected)) >= 2
    for result in mine_all(data, task).values():
        assert result.n_rows == len(joined)
        assert result.itemsets is not None
        assert {frozenset(itemset): count for itemset, count in result.itemsets.rows()} == expected
