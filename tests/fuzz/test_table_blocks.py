"""Sources of tables made wrong are encoded as they are read into memory, or refused; so are their blocks."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.errors import ComineError
from mining.data.formats import text_files
from mining.data.loading import load_table
from mining.data.tables import Table
from mining.partitioned.cores import Cores
from mining.partitioned.encoding import encode
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.in_process import InProcess
from mining.partitioned.tables.encode import TableEncoding, write_table_blocks
from mining.partitioned.tables.stored import StoredTable
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import FUZZED, READERS
from tests.fuzz.test_blocks import PIECES, SEEDS
from tests.mining.partitioned.tables_world import cells
from tests.mining.partitioned.test_encoding import Inline

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.turn(3)]

FORMS = {
    "table": "csv",
    "parquet-table": "parquet",
    "sqlite": "sql",
    "duckdb": "sql",
}  # by reader in `readers`, whose seeds all examples have


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "Workers", Inline)


def _source(form: str, path: Path) -> TableSource:
    if FORMS[form] == "sql":
        return TableSource(f"{form}:///{path}", "sql", query="select id, item from rows")
    return TableSource(str(path), FORMS[form])


def _in_memory(source: TableSource) -> Table | None:
    try:
        return load_table(source.place, source.format, query=source.query, id_columns=source.id_columns)
    except ComineError:
        return None


def _in_blocks(source: TableSource, blocks: Path) -> StoredTable | None:
    try:
        return TableEncoding(source, [], blocks, Cores(2)).run()
    except ComineError:
        assert not blocks.exists()
        return None


def _stored_cells(stored: StoredTable) -> list[list[str]]:
    parts = list(stored.rows(InProcess).parts(cells))
    return [[cell for part in parts for cell in part[place]] for place in range(len(parts[0]))]


@pytest.mark.parametrize("form", FORMS)
@FUZZED
@given(data=st.data())
def test_a_table_is_encoded_as_it_is_read_or_refused(form: str, folder: Path, data: st.DataObject) -> None:
    path, blocks = folder / "source", folder / "encoded"
    shutil.rmtree(blocks, ignore_errors=True)
    seeds = SEEDS.get(f"tables {form}") or SEEDS.setdefault(f"tables {form}", READERS[form].seeds(folder))
    path.write_bytes(data.draw(st.sampled_from(seeds) | mutated(seeds)))
    source = _source(form, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", data.draw(PIECES))
        found = _in_blocks(source, blocks)
    expected = _in_memory(source)
    if expected is None:
        assert found is None
    elif found is not None:
        assert _stored_cells(found) == cells(expected)
        assert found.digest == expected.digest()
    else:  # only proper CSV can be cut, and of CSV that is not some is read
        assert b'"' in path.read_bytes()


@pytest.mark.parametrize("form", ["table", "parquet-table"])
@FUZZED
@given(data=st.data())
def test_a_reader_of_a_share_of_a_table_refuses_what_another_may_read(
    form: str, folder: Path, data: st.DataObject
) -> None:
    path, blocks = folder / "share", folder / "of-a-share"
    shutil.rmtree(blocks, ignore_errors=True)
    blocks.mkdir()
    seeds = SEEDS.get(f"tables {form}") or SEEDS.setdefault(f"tables {form}", READERS[form].seeds(folder))
    path.write_bytes(data.draw(mutated(seeds)))
    with contextlib.suppress(ComineError):
        write_table_blocks(_source(form, path), (0,), [], blocks, 0)


@FUZZED
@given(data=st.data())
def test_stored_tables_are_the_same_or_refused(folder: Path, data: st.DataObject) -> None:
    """Any file of a folder, made wrong: the table is what it was, or is encoded anew."""
    honest, copy, path = folder / "honest", folder / "copy", folder / "people.csv"
    if not honest.exists():
        path.write_bytes(READERS["table"].seeds(folder)[0])
        _in_blocks(_source("table", path), honest)
    expected = load_table(path, "csv")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(honest, copy)
    changed = data.draw(st.sampled_from(sorted(copy.iterdir())))
    stored = StoredTable.open(copy)
    assert stored is not None
    before = stored if data.draw(st.booleans()) else None  # whether it was opened before
    changed.write_bytes(data.draw(mutated([changed.read_bytes()])))
    stored = before or StoredTable.open(copy)
    if stored is not None:
        with contextlib.suppress(ComineError):
            assert _stored_cells(stored) == cells(expected)
        for name in expected.column_names:
            with contextlib.suppress(ComineError):
                texts, counts = stored.value_counts(name)
                assert texts.equals(expected.value_counts(name)[0])
                assert counts.tolist() == expected.value_counts(name)[1].tolist()
