"""Sources made wrong are encoded into blocks as they are read into memory, or refused; so are blocks made wrong."""

from __future__ import annotations

import contextlib
import gzip
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from link.errors import ComineError
from mining.data.formats import text_files
from mining.data.loading import load_transactions
from mining.data.transactions import Transactions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding import encode
from mining.partitioned.encoding.encode import Encoding
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.encoding.writing import write_blocks
from mining.partitioned.in_process import InProcess
from mining.partitioned.stored import StoredRows
from mining.partitioned.tables.expected import expected_table
from party.config import DatasetSection
from party.data.engine import engine_of, estimated_bytes
from tests.fuzz.honest_files import baskets_parquet_file, duckdb_file, sqlite_file, texts
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import FUZZED
from tests.mining.partitioned.test_encoding import Inline, rows_of, stored_rows

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.turn(3)]


@dataclass(frozen=True)
class Form:
    """A format of sources.

    Attributes:
        format: As in `load_transactions`.
        seeds: Honest ones.
        url: Of a database, in front of its path.
    """

    format: str
    seeds: Callable[[Path], Sequence[bytes]]
    url: str = ""

    def source(self, path: Path) -> TransactionSource:
        """The source that is in a file."""
        query = "select id, item from rows" if self.url else None
        return TransactionSource(f"{self.url}{path}", self.format, query=query)


BASKETS = b"bread milk\nmilk\n\nbeer bread\n" * 4

FORMS: dict[str, Form] = {
    "basket": Form("basket", lambda folder: [BASKETS, gzip.compress(BASKETS, mtime=0)]),
    "csv": Form("csv", texts('bread,"mi,lk"\nmilk\n"be\ner",bread\n')),
    "wide": Form("wide", texts("id,bread,milk\n1,1,0\n2,1,1\n3,0,0\n")),
    "long": Form("long", texts("id,item\n1,bread\n1,milk\n2,bread\n1,beer\n", 'item,"id"\n"a\nb",1\n,2\n')),
    "parquet": Form("parquet", baskets_parquet_file),
    "sqlite": Form("sql", sqlite_file, "sqlite:///"),
    "duckdb": Form("sql", duckdb_file, "duckdb:///"),
}
PIECES = st.sampled_from([16, 64, 1 << 24])  # bytes of text that are read at once
SEEDS: dict[str, Sequence[bytes]] = {}  # the same in all examples of a test


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "Workers", Inline)


def _in_memory(source: TransactionSource) -> Transactions | None:
    try:
        return load_transactions(source.place, source.format, query=source.query)
    except ComineError:
        return None


def _in_blocks(source: TransactionSource, blocks: Path) -> StoredRows | None:
    try:
        return Encoding(source, [], blocks, Cores(2)).run()
    except ComineError:
        assert not blocks.exists()
        return None


@pytest.mark.parametrize("form", FORMS)
@FUZZED
@given(data=st.data())
def test_a_source_is_encoded_as_it_is_read_or_refused(form: str, folder: Path, data: st.DataObject) -> None:
    path, blocks = folder / "source", folder / "encoded"
    shutil.rmtree(blocks, ignore_errors=True)
    seeds = SEEDS.get(form) or SEEDS.setdefault(form, FORMS[form].seeds(folder))
    path.write_bytes(data.draw(st.sampled_from(seeds) | mutated(seeds)))
    source = FORMS[form].source(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", data.draw(PIECES))
        found = _in_blocks(source, blocks)
    expected = _in_memory(source)
    if expected is None:
        assert found is None
    elif found is not None:
        assert sorted(stored_rows(found)) == sorted(rows_of(expected))
    else:  # only proper CSV can be cut, and of CSV that is not some is read
        assert b'"' in path.read_bytes()


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("sqlite", "duckdb")])
@FUZZED
@given(data=st.data())
def test_a_reader_of_a_share_refuses_what_another_may_read(form: str, folder: Path, data: st.DataObject) -> None:
    """The file may become another between the cut into shares and their reading."""
    path, blocks = folder / "share", folder / "of-a-share"
    shutil.rmtree(blocks, ignore_errors=True)
    seeds = SEEDS.get(form) or SEEDS.setdefault(form, FORMS[form].seeds(folder))
    path.write_bytes(data.draw(mutated(seeds)))
    with contextlib.suppress(ComineError):
        write_blocks(FORMS[form].source(path), (0,), [], blocks, 0)


@pytest.mark.parametrize("form", FORMS)
@FUZZED
@given(data=st.data())
def test_the_memory_of_a_source_is_estimated(form: str, folder: Path, data: st.DataObject) -> None:
    path = folder / "estimated"
    seeds = SEEDS.get(form) or SEEDS.setdefault(form, FORMS[form].seeds(folder))
    path.write_bytes(data.draw(mutated(seeds)))
    source = FORMS[form].source(path)
    dataset = DatasetSection(
        name="baskets", kind="transactions", source=source.place, format=source.format, query=source.query
    )
    assert estimated_bytes(dataset) >= 0
    assert engine_of(dataset, Decimal("0.5")) in ("memory", "processes")
    if source.format in ("csv", "parquet"):
        found = expected_table(TableSource(source.place, source.format))
        assert found.peak >= found.kept >= 0


@FUZZED
@given(data=st.data())
def test_stored_blocks_are_the_same_or_refused(folder: Path, data: st.DataObject) -> None:
    """Any file of a folder, made wrong: the rows are what they were, or are encoded anew."""
    honest, copy = folder / "honest", folder / "copy"
    path = folder / "rows.basket"
    if not honest.exists():
        path.write_bytes(BASKETS)
        _in_blocks(FORMS["basket"].source(path), honest)
    expected = rows_of(load_transactions(str(path), "basket"))
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(honest, copy)
    changed = data.draw(st.sampled_from(sorted(copy.iterdir())))
    changed.write_bytes(data.draw(mutated([changed.read_bytes()])))
    stored = StoredRows.open(copy)
    if stored is not None:
        with contextlib.suppress(ComineError):
            assert stored_rows(stored) == expected
            assert stored.rows(InProcess).item_counts().tolist() == [4, 8, 8]  # of beer, bread, milk
