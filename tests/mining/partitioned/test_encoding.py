"""Sources in blocks hold what they hold in memory, and are read again only where something changed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import InputDataError
from mining.data.formats import text_files
from mining.data.loading import load_transactions
from mining.data.transactions import Transactions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding import encode, grouping, pieces, writing
from mining.partitioned.encoding.encode import Encoding, origin_of
from mining.partitioned.encoding.source import TransactionSource
from mining.partitioned.in_process import InProcess
from mining.partitioned.stored import DICTIONARY, MANIFEST, StoredRows
from tests.errors import fails

pytestmark = pytest.mark.turn(6)

ITEM = st.sampled_from(["a", "b", "ä", "🥖", "c,d", 'q"', "e f", "two\nlines", "007", "zz"])
ROWS = st.lists(st.lists(ITEM, max_size=5), max_size=30)


class Inline:
    """Workers that work in this process."""

    number = 3

    def __init__(self, _number: int, _cores: Cores) -> None:
        pass

    def run(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [function(*arguments) for arguments in calls]

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "Workers", Inline)


def encoded(source: TransactionSource, folder: Path, withheld: Sequence[str] = ()) -> StoredRows:
    return Encoding(source, withheld, folder, Cores(3)).run()


def rows_of(data: Transactions) -> list[tuple[str, ...]]:
    bounds = data.offsets.tolist()
    return [tuple(data.items[item] for item in data.indices[start:stop].tolist()) for start, stop in pairwise(bounds)]


def stored_rows(stored: StoredRows) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for block in stored.rows(InProcess).parts(lambda rows, _: rows):
        found += rows_of(Transactions(stored.items, block.offsets, block.indices))
    return found


def load(source: TransactionSource) -> Transactions:
    return load_transactions(
        source.place,
        source.format,
        separator=source.separator,
        query=source.query,
        id_column=source.id_column,
        item_column=source.item_column,
    )


def assert_same(source: TransactionSource, folder: Path, withheld: Sequence[str] = ()) -> StoredRows:
    """The blocks hold what memory would, in the same order unless a row is said in several lines."""
    expected = load(source).without(withheld)
    stored = encoded(source, folder, withheld)
    assert stored.items == expected.items
    assert stored.counts.tolist() == expected.item_counts().tolist()
    if source.format in ("long", "sql") or "long" in source.place:
        assert sorted(stored_rows(stored)) == sorted(rows_of(expected))
    else:
        assert stored_rows(stored) == rows_of(expected)
        assert stored.digest == expected.digest()
    again = StoredRows.open(folder)
    assert again is not None
    assert (again.items, list(again.lengths), again.digest) == (stored.items, list(stored.lengths), stored.digest)
    return stored


def write(rows: list[list[str]], form: str, path: Path) -> None:
    """The rows in a format that keeps them, or nearly."""
    names = sorted({item for row in rows for item in row} | {"never"})
    if form in ("lists", "wide parquet", "long parquet"):
        pairs = [(place, item) for item in names for place, row in enumerate(rows) if item in row]
        table = {
            "lists": pa.table({"items": pa.array(rows, pa.list_(pa.string()))}),
            "wide parquet": pa.table({name: [name in row for row in rows] for name in names}),
            "long parquet": pa.table(
                {
                    "id": pa.array([place for place, _ in pairs], pa.int64()),
                    "item": pa.array([item for _, item in pairs], pa.string()),
                }
            ),
        }[form]
        pq.write_table(table, path, row_group_size=4)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n" if len(rows) % 2 else "\n")
    if form == "wide":
        writer.writerow(["id", *names])
        writer.writerows([place, *(int(name in row) for name in names)] for place, row in enumerate(rows))
    elif form == "long":
        writer.writerow(["item", "id"])
        writer.writerows((item, f"n{place}") for place, row in enumerate(rows) for item in row or [""])
    elif form == "csv":
        writer.writerows(row or [""] for row in rows)
    else:
        text.write("".join(" ".join(item.replace("\n", "").replace(" ", "") for item in row) + "\n" for row in rows))
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if len(rows) % 3 == 0 else data)


@pytest.mark.parametrize("form", ["lists", "wide parquet", "long parquet", "wide", "long", "csv", "basket"])
@given(ROWS, st.sampled_from([8, 40, 1 << 24]), st.sampled_from([2, 1 << 18]))
@settings(max_examples=15)
def test_every_format(
    tmp_path_factory: pytest.TempPathFactory, form: str, rows: list[list[str]], text: int, most: int
) -> None:
    folder = tmp_path_factory.mktemp("encoded")
    write(rows, form, folder / form)
    source = TransactionSource(str(folder / form), form.split()[-1].replace("lists", "parquet"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", text)
        patch.setattr(pieces, "MOST_ROWS", most)
        patch.setattr(pieces, "MOST_OCCURRENCES", 2 * most)
        assert_same(source, folder / "blocks", ["a", "z*"] if len(rows) % 2 else [])


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 3, 1.0, "1", 2.5, "2", b"x"]), st.sampled_from(["a", "b", "", None, 7])),
        max_size=20,
    )
)
@settings(max_examples=15)
def test_a_database(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[object, object]]) -> None:
    folder = tmp_path_factory.mktemp("encoded")
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("create table sales (id, item)")
        database.executemany("insert into sales values (?, ?)", pairs)
    database.close()
    assert_same(
        TransactionSource(f"sqlite:///{folder / 'shop.db'}", "sql", query="select * from sales"), folder / "blocks"
    )


def test_a_row_may_go_on_over_many_batches(tmp_path: Path) -> None:
    pairs = [(f"id {place % 7}", f"item {place % 1000}") for place in range(5000)]
    table = pa.table({"id": [key for key, _ in pairs], "item": [item for _, item in pairs]})
    pq.write_table(table, tmp_path / "pairs.parquet", row_group_size=100)
    source = TransactionSource(str(tmp_path / "pairs.parquet"), "parquet")
    stored = encoded(source, tmp_path / "blocks")
    assert sorted(stored_rows(stored)) == sorted(rows_of(load(source)))


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        ("basket", b"a b\n" * 50 + b"c\rd\n", 51),
        ("basket", b"a b\n" * 50 + b"\xff\n", 51),
        ("basket", b"a b\n" * 50 + b"\0\n", 51),
        ("csv", b'a,"b"\n' * 50 + b'a,"b" c\n', 51),
        ("long", b"id,item\n" + b"1,a\n" * 50 + b",a\n", 52),
        ("long", b"id,item\n" + b"1,a\n" * 50 + b"1,a,b\n", 52),
        ("wide", b"id,a,b\n" + b"1,0,1\n" * 50 + b"1,0,2\n", 52),
        ("wide", b"id,a,b\n" + b"1,0,1\n" * 50 + b"1,0\n", 52),
        ("parquet", b"PAR1 and nothing else", None),
        ("basket", b"\x1f\x8b and nothing else", None),
    ],
)
def test_errors_name_the_line_in_the_whole_file(
    form: str, text: bytes, line: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    (tmp_path / "source").write_bytes(text)
    source = TransactionSource(str(tmp_path / "source"), form)
    with fails("E101") as found:
        encoded(source, tmp_path / "blocks")
    with pytest.raises(InputDataError) as expected:
        load(source)
    assert found.value.message == expected.value.message
    assert line is None or f"line {line}" in found.value.message
    assert not (tmp_path / "blocks").exists()


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", 64)
    monkeypatch.setattr(text_files, "MOST_BYTES", 1 << 20)
    (tmp_path / "source").write_bytes(b"a\n" + b"b\r" * (1 << 20))
    with fails("E101"):
        encoded(TransactionSource(str(tmp_path / "source"), "basket"), tmp_path / "blocks")


def test_what_is_withheld_is_in_no_file(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("milk hiv-positive\nhiv-negative\nmilk bread\n")
    encoded(TransactionSource(str(tmp_path / "source"), "basket"), tmp_path / "blocks", ["hiv*"])
    files = list((tmp_path / "blocks").iterdir())
    assert len(files) == 3
    assert all(b"hiv" not in file.read_bytes() for file in files)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert (tmp_path / "blocks").stat().st_mode & 0o777 == 0o700


def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "source"
    path.write_text("a b\n")

    def changing(*arguments: Any) -> list[tuple[str, int]]:
        path.write_text("a b\nc\n")
        return writing.write_blocks(*arguments)

    monkeypatch.setattr(encode, "write_blocks", changing)
    with fails("E101"):
        encoded(TransactionSource(str(path), "basket"), tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_text("a b\n")
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no disk that is always full")
    real = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda path, *more, **named: real(full, os.O_WRONLY) if ".block" in str(path) else real(path, *more, **named),
    )
    with fails("E103"):
        encoded(TransactionSource(str(tmp_path / "source"), "basket"), tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_grouping_tells_what_reading_met(tmp_path: Path) -> None:
    def pairs() -> Any:
        yield pa.array(["1"]), pa.array(["a"])
        raise InputDataError("the source is wrong.")

    with fails("E101"):
        list(grouping.grouped(pairs(), tmp_path))


@pytest.mark.parametrize("file", [MANIFEST, DICTIONARY, "000000-000000.block"])
@pytest.mark.parametrize("how", ["gone", "cut", "changed"])
def test_blocks_that_are_not_whole_are_not_taken(file: str, how: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("a b\nc\n")
    stored = encoded(TransactionSource(str(tmp_path / "source"), "basket"), tmp_path / "blocks")
    path = tmp_path / "blocks" / file
    whole = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] if how == "cut" else whole[:middle] + b"\xff\xfe" + whole[middle + 2 :])
    found = StoredRows.open(tmp_path / "blocks")
    if found is not None:
        assert file.endswith(".block")
        with fails("E101"):
            stored.rows(InProcess).total(Transactions.item_counts)
        assert StoredRows.open(tmp_path / "blocks") is None


def test_the_origin_changes_with_the_file_and_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_text("a b\n")
    source = TransactionSource(str(path), "basket")
    origins = {origin_of(source, []), origin_of(source, ["a"]), origin_of(TransactionSource(str(path), "csv"), [])}
    path.write_text("a b c\n")
    origins.add(origin_of(source, []))
    assert len(origins) == 4
    path.unlink()
    with fails("E101"):
        origin_of(source, [])


def test_the_manifest_says_little(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("a b\nc\n")
    encoded(TransactionSource(str(tmp_path / "source"), "basket"), tmp_path / "blocks")
    manifest, _ = json.loads((tmp_path / "blocks" / MANIFEST).read_bytes())
    assert set(manifest) == {"form", "origin", "digest", "dictionary", "blocks"}


def test_more_items_than_two_bytes_can_number(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    rows = [[f"{item}" for item in generator.integers(0, 100_000, 3000)] for _ in range(60)]
    pq.write_table(pa.table({"items": rows}), tmp_path / "source.parquet", row_group_size=20)
    stored = assert_same(TransactionSource(str(tmp_path / "source.parquet"), "parquet"), tmp_path / "blocks")
    assert len(stored.items) > 65_536
    assert len(stored.names) == 3
