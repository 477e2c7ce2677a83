"""What a source looks like: what is guessed can be read, and gives the rows that were written."""

from __future__ import annotations

import csv
import gzip
import io
import tomllib
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.errors import InputDataError
from link.files.toml_text import quoted
from mining.data.loading import load_transactions
from mining.data.source_format import Guess, guess_format
from tests.errors import fails

WORD = st.text("abcdefgh", min_size=1, max_size=6)
ROWS = st.lists(st.lists(WORD, min_size=2, max_size=5, unique=True), min_size=4, max_size=20)


def rows_of(path: Path, guess: Guess) -> list[set[str]]:
    data = load_transactions(
        path,
        guess.format,
        separator=guess.separator,
        id_column=guess.id or "id",
        item_column=guess.item or "item",
    )
    ends = data.offsets.tolist()
    return [{data.items[index] for index in data.indices[start:stop]} for start, stop in pairwise(ends)]


def records(rows: list[list[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@given(
    rows=ROWS, delimiter=st.sampled_from([" ", ",", ";", "\t", "|", ", ", "; "]), end=st.sampled_from(["\n", "\r\n"])
)
def test_lists_of_items_are_read_as_written(folder: Path, rows: list[list[str]], delimiter: str, end: str) -> None:
    path = folder / "lists"
    path.write_bytes("".join(delimiter.join(row) + end for row in rows).encode())
    guess = guess_format(str(path))
    assert guess.format in ("basket", "csv")
    assert rows_of(path, guess) == [set(row) for row in rows]


@given(
    rows=ROWS,
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    names=st.sampled_from([("id", "item"), ("Member_number", "itemDescription"), ("tid", "product"), ("x", "y")]),
    packed=st.booleans(),
)
def test_the_long_form_is_read_as_written(
    folder: Path, rows: list[list[str]], delimiter: str, names: tuple[str, str], packed: bool
) -> None:
    path = folder / "long"
    cells = [list(names), *([f"{number:04}", item] for number, row in enumerate(rows) for item in row)]
    text = records(cells, delimiter).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    guess = guess_format(str(path))
    assert guess.format == "long"
    assert rows_of(path, guess) == [set(row) for row in rows]


@given(rows=ROWS, delimiter=st.sampled_from([",", ";", "\t"]), with_id=st.booleans(), words=st.booleans())
def test_the_wide_form_is_read_as_written(
    folder: Path, rows: list[list[str]], delimiter: str, with_id: bool, words: bool
) -> None:
    path = folder / "wide"
    items = sorted({item for row in rows for item in row})
    no, yes = ("false", "true") if words else ("0", "1")
    cells = [[*(["Kunde"] if with_id else []), *items]]
    for number, row in enumerate(rows):
        marks = [yes if item in row else no for item in items]
        cells.append([*([f"K{number}"] if with_id else []), *marks])
    path.write_text(records(cells, delimiter))
    guess = guess_format(str(path))
    assert guess.format == "wide"
    assert rows_of(path, guess) == [set(row) for row in rows]


def test_quoted_items(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    path.write_text('bread,"milk, fresh"\n"milk, fresh",tea\nbread,tea\n')
    assert rows_of(path, guess_format(str(path))) == [
        {"bread", "milk, fresh"},
        {"milk, fresh", "tea"},
        {"bread", "tea"},
    ]


def test_a_long_form_without_names_says_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("1,bread\n1,milk\n2,tea\n3,tea\n3,jam\n")
    guess = guess_format(str(path))
    assert guess.format == "long"
    assert "write id,item above" in guess.reason


def test_parquet_and_databases(tmp_path: Path) -> None:
    path = tmp_path / "baskets"
    pq.write_table(pa.table({"id": [1, 1], "item": ["a", "b"]}), path)
    assert guess_format(str(path)).settings == {"format": "parquet"}
    assert guess_format("sqlite:///sales.db").format == "sql"
    assert guess_format("postgres://db/sales").format == "sql"


def test_one_word_a_line_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("\nbread\n\nmilk\n")
    assert guess_format(str(path)).settings == {"format": "basket"}


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"a b\n" * 99, mtime=0)[:-9]])
def test_what_cannot_be_guessed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "source"
    path.write_bytes(content)
    with fails("E101"):
        guess_format(str(path))


@pytest.mark.parametrize("name", ["nothing", "."])
def test_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputDataError):
        guess_format(str(tmp_path / name))


def test_only_the_head_of_a_large_file_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"bread milk\n" * 100_000 + b"\xff;;;")
    assert guess_format(str(path)).format == "basket"


@given(st.text())
def test_text_as_toml(text: str) -> None:
    assert tomllib.loads(f"key = {quoted(text)}")["key"] == text
