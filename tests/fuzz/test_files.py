"""Whatever is in a file, reading it ends well or with an error of comine: one sentence, a code, no traceback.

Each reader meets honest files that were made wrong, with fresh seeds on every run outside of CI."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.reading import read_parquet as read_rows
from anonymize.reading import read_sql
from anonymize.verification.rows import read_parquet
from link.errors import ComineError
from mining.data.loading import load_table, load_transactions
from tests.fuzz.honest_files import parquet_bytes, sqlite_file
from tests.fuzz.mutations import mutated, mutated_pem
from tests.fuzz.readers import FUZZED, READERS, table_in, transactions_in

pytestmark = [
    pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning", "ignore::UserWarning"),
    pytest.mark.turn(3),
]


def not_utf8() -> pa.Array:
    return pa.StringArray.from_buffers(2, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"\xffa"))


def test_parquet_whose_text_is_none(folder: Path) -> None:
    """Arrow reads it, and fails only where somebody looks at the cell."""
    bad, path = not_utf8(), folder / "bad.parquet"
    lists = pa.ListArray.from_arrays([0, 1, 2], bad)
    readers: list[Callable[[Path], object]] = [transactions_in("parquet"), table_in("parquet"), read_parquet, read_rows]
    for table in (
        pa.table({"items": lists}),
        pa.table({"id": ["1", "2"], "item": bad}),
        pa.table({"id": bad, "item": ["a", "b"]}),
        pa.table({"id": bad.dictionary_encode(), "item": bad.dictionary_encode()}),
        pa.table({"id": ["1", "2"], "other": bad}),
    ):
        path.write_bytes(parquet_bytes(table))
        for read in readers:
            with contextlib.suppress(ComineError):
                read(path)


def test_parquet_whose_columns_have_no_names(folder: Path) -> None:
    path = folder / "bad.parquet"
    whole = parquet_bytes(pa.table({"id": ["1"], "item": ["a"], "zzzz": ["b"]}), compression="none")
    for readers in (transactions_in("parquet"), table_in("parquet"), read_parquet, read_rows):
        path.write_bytes(whole.replace(b"zzzz", b"\xff\xfe\xfd\xfc"))
        with contextlib.suppress(ComineError):
            readers(path)


def test_sqlite_whose_text_is_none(folder: Path) -> None:
    path = folder / "bad.sqlite"
    path.write_bytes(sqlite_file(folder)[0])
    for query in (
        "select id, item from rows",
        "select item as id, id as item from rows",
        "select id, item, cast(x'ff' as text) from rows",
        "select 1 as 'i\0d', 2 as item",
    ):
        for load in (load_transactions, load_table):
            with pytest.raises(ComineError):
                load(f"sqlite:///{path}", "sql", query=query)
        with contextlib.suppress(ComineError):
            read_sql(f"sqlite:///{path}", query)


SEEDS: dict[tuple[str, Path], Sequence[bytes]] = {}  # the same in all examples of a test


@pytest.mark.parametrize("kind", READERS)
@FUZZED
@given(data=st.data())
def test_a_file_is_read_or_refused(kind: str, folder: Path, data: st.DataObject) -> None:
    reader = READERS[kind]
    path = folder / reader.name
    seeds = SEEDS.setdefault((kind, folder), reader.seeds(folder))
    path.write_bytes(data.draw((mutated_pem if reader.pem else mutated)(seeds)))
    with contextlib.suppress(ComineError, *reader.allowed):
        reader.read(path)


@pytest.mark.parametrize("kind", READERS)
def test_an_honest_file_is_read(kind: str, folder: Path) -> None:
    """Else the ones that are made wrong show nothing."""
    reader = READERS[kind]
    first = reader.seeds(folder)[0]
    if kind in ("sqlite", "pki-certificate", "pki-key", "certificate", "authority", "key"):
        return  # of these a single honest part is not whole
    (folder / reader.name).write_bytes(first)
    reader.read(folder / reader.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")
