"""Sources that are copied while they are read: several files, other encodings, workbooks, stores; one reading each."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from link.errors import ComineError, outward
from link.files.scratch import remove_abandoned
from mining.data.copies import COPIES, Wanted, local_file
from mining.data.loading import load_table, load_transactions
from mining.data.source_format import guess_format
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.transactions import Transactions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.in_process import InProcess
from mining.partitioned.sources import encoding_of
from party.config import DatasetSection
from party.data.dataset_check import check_dataset
from tests.errors import fails
from tests.mining.partitioned.world import encode_here
from tests.s3_server import S3Server, s3_server
from tests.site import TOKEN, Site, trusted_site
from tests.site import site as site_of_files

pytestmark = pytest.mark.turn(6)

BOOK = Path(__file__).parent / "sales.xlsx"


def rows(data: Transactions) -> list[list[str]]:
    return [[data.items[place] for place in row] for row in np.split(data.indices, data.offsets[1:-1])]


def load(source: object, form: str, tmp_path: Path, options: SourceOptions = PLAIN, **more: Any) -> list[list[str]]:
    """The transactions, which are the same in memory and in blocks."""
    data = load_transactions(str(source), form, options=options, **more)
    place = TransactionSource(str(source), form, more.get("separator"), options=options)
    stored = encoding_of(place, (), tmp_path / "blocks", Cores()).run()
    assert stored.digest == data.digest()
    return rows(data)


def test_text_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("milk tea")
    (tmp_path / "a.txt").write_text("bread\n")
    with gzip.open(tmp_path / "c.txt", "wt") as file:
        file.write("tea\n")
    assert load(tmp_path / "*.txt", "basket", tmp_path) == [["bread"], ["milk", "tea"], ["tea"]]


def test_names_of_columns_once_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id;item\n1;bread\n1;milk")
    (tmp_path / "2.csv").write_text('"id";item\r\n2;"tea\n"\r\n')
    assert load(tmp_path / "?.csv", "long", tmp_path, separator=";") == [["bread", "milk"], ["tea\n"]]
    (tmp_path / "3.csv").write_text("id;article\n2;bread\n")
    with fails("E101") as caught:
        load_transactions(str(tmp_path / "?.csv"), "long", separator=";")
    assert f"{tmp_path / '3.csv'} has other names" in caught.value.message


def test_a_folder_by_year_of_several_files(tmp_path: Path) -> None:
    for year, name in (("2025", "bread"), ("2026", "tea%"), ("__HIVE_DEFAULT_PARTITION__", "milk")):
        folder = tmp_path / "sales" / f"year={year}" / "town=K%C3%B6ln"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [name], "price": [1.5]}), folder / "part.parquet")
    table = load_table(str(tmp_path / "sales"), "parquet")
    cells = {
        each.name: [each.values[code].as_py() if code >= 0 else None for code in each.codes] for each in table.columns
    }
    assert cells == {"price": ["1.5"] * 3, "year": ["2025", "2026", None], "town": ["Köln"] * 3}
    source = TableSource(str(tmp_path / "sales"), "parquet")
    stored = encoding_of(source, (), tmp_path / "blocks", Cores()).run()
    assert stored.rows(InProcess).digest() == table.digest()
    pq.write_table(pa.table({"id": [1], "price": [1.5]}), tmp_path / "sales" / "other.parquet")
    with fails("E101"):
        load_table(str(tmp_path / "sales"), "parquet")


def test_items_are_no_folders_of_several_files(tmp_path: Path) -> None:
    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"x": [["a", "b"]]}), tmp_path / f"year={year}" / "x.parquet")
    assert load(tmp_path / "year=*" / "*.parquet", "parquet", tmp_path) == [["a", "b"]] * 2


def test_none_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, form in (("*.none", "basket"), ("empty", "parquet")):
        with fails("E101"):
            load_transactions(str(tmp_path / source), form)


def test_a_file_that_looks_like_a_pattern_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("bread")
    assert load(tmp_path / "a[1].txt", "basket", tmp_path) == [["bread"]]


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-8-sig"])
def test_text_in_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,item\r\n1,Müsli\r\n".encode(encoding))
    assert load(path, "long", tmp_path, SourceOptions(encoding=encoding)) == [["Müsli"]]
    assert guess_format(str(path), options=SourceOptions(encoding=encoding)).format == "long"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "blocks"]


def test_a_hint_in_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Müsli Tee\n" * 3)
    described = {"name": "a", "kind": "transactions", "source": str(path), "format": "basket"}
    for encoding, found in ((None, []), ("latin-1", ["encoding"]), ("windows-1252", ["encoding"])):
        checked = check_dataset(DatasetSection.model_validate(described | {"encoding": encoding}))
        assert [each.kind for each in checked.hints if each.kind == "encoding"] == found


DIES = """
import os, pathlib, signal, sys
from mining.data.copies import Wanted, local_file
from mining.data.source_options import SourceOptions
with local_file(sys.argv[1], SourceOptions(encoding="latin-1"), Wanted("basket")):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_copy_of_a_process_that_was_killed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes(b"M\xfcsli")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    options, wanted = SourceOptions(encoding="latin-1"), Wanted("basket")
    variables = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "a.txt")], env=variables, check=False)
    assert died.returncode < 0
    (left,) = (tmp_path / "tmp").iterdir()
    with local_file(str(tmp_path / "a.txt"), options, wanted) as living:
        assert not left.exists()
        remove_abandoned(tmp_path / "tmp", COPIES)
        assert living.read_text() == "Müsli"


def test_the_wrong_one_in_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"M\xfcsli")
    with fails("E101"):
        load_transactions(path, "basket")
    with fails("E101") as caught:
        load_transactions(path, "basket", options=SourceOptions(encoding="ascii"))
    assert str(path) in caught.value.message


def test_sheets_of_workbooks(tmp_path: Path) -> None:
    assert load(BOOK, "long", tmp_path) == [["7", "bread"], ['Müsli, "fine"']]
    table = load_table(BOOK, "csv", options=SourceOptions(sheet="people"))
    cells = {each.name: each.values.to_pylist() for each in table.columns}
    assert cells == {"born": ["2001-02-03"], "price": ["1.5"], "member": ["true"]}
    assert guess_format(str(BOOK)).format == "long"


def test_what_is_none_of_workbooks(tmp_path: Path) -> None:
    with fails("E101"):
        load_transactions(BOOK, "long", options=SourceOptions(sheet="nowhere"))
    with fails("E100"):
        load_transactions(BOOK, "basket")
    (tmp_path / "text.xlsx").write_text("id,item")
    with fails("E101") as caught:
        load_transactions(tmp_path / "text.xlsx", "long")
    assert str(tmp_path / "text.xlsx") in caught.value.message


@pytest.fixture(autouse=True)
def encoded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made, and read whole, before workers start."""
    encode_here(monkeypatch)


@pytest.fixture
def site() -> Iterator[Site]:
    with site_of_files() as found:
        yield found


def test_a_file_of_urls(site: Site, tmp_path: Path) -> None:
    assert load(site.url("/a.txt"), "basket", tmp_path) == [["bread", "milk"], ["tea"]]
    assert guess_format(site.url("/a.txt")).format == "basket"
    assert set(site.asked) == {None}
    site.files["/b.parquet"] = _parquet(pa.table({"id": [1], "item": ["bread"]}))
    assert load(site.url("/b.parquet"), "parquet", tmp_path) == [["bread"]]


def test_passwords_of_urls(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", TOKEN)
    word = SourceOptions(password_env="WORD")
    assert load(site.url("/private"), "basket", tmp_path, word) == [["bread", "milk"], ["tea"]]
    assert load(site.url("/a.txt", "ann@"), "basket", tmp_path, word)
    assert site.asked[-1] == "Basic YW5uOmh1bnRlcjI="


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/private", "refuses the access"),
        ("/none", "answers 404"),
        ("/away", "redirected"),
        ("/short", "another length"),
    ],
)
def test_what_cannot_be_read_of_urls(site: Site, path: str, words: str) -> None:
    with fails("E101") as caught:
        load_transactions(site.url(path), "basket")
    assert words in caught.value.message
    check_discretion(caught.value)


def test_nobody_there_of_urls() -> None:
    with fails("E101") as caught:
        load_transactions("http://127.0.0.1:1/a.txt", "basket")
    check_discretion(caught.value)


def test_certificates_of_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", TOKEN)
    word = SourceOptions(password_env="WORD")
    with trusted_site(tmp_path / "site", monkeypatch) as found:
        assert load(found.url("/private"), "basket", tmp_path, word) == [["bread", "milk"], ["tea"]]
        found.asked.clear()
        elsewhere = found.url("/private").replace("127.0.0.1", "localhost")  # which is not in the certificate
        with fails("E101") as caught:
            load_transactions(elsewhere, "basket", options=word)
        check_discretion(caught.value)
        monkeypatch.delenv("SSL_CERT_FILE")
        with fails("E101") as caught:
            load_transactions(found.url("/private"), "basket", options=word)
        check_discretion(caught.value)
        assert "certificate is not trusted" in caught.value.message
        assert found.asked == []  # no password has left


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        found.put("shop/2025/a.txt", b"bread milk\n")
        found.put("shop/2026/b.txt", b"tea")
        found.put("shop/lists/year=1/a.parquet", _parquet(pa.table({"id": ["a"], "x": ["b"]})))
        found.put("shop/lists/year=2/a.parquet", _parquet(pa.table({"id": ["c"], "x": ["d"]})))
        yield found


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", TOKEN)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_files_of_s3(store: S3Server, tmp_path: Path) -> None:
    assert load(store.url("shop/2025/a.txt"), "basket", tmp_path) == [["bread", "milk"]]
    assert load(store.url("shop/*/*.txt"), "basket", tmp_path) == [["bread", "milk"], ["tea"]]
    assert guess_format(store.url("shop/2025/a.txt")).format == "basket"


def test_a_folder_of_s3(store: S3Server) -> None:
    table = load_table(store.url("shop/lists/"), "parquet")
    assert {each.name: each.values.to_pylist() for each in table.columns} == {"x": ["b", "d"], "year": ["1", "2"]}


@pytest.mark.parametrize("place", ["shop/none.txt", "shop/2025/*.csv", "nowhere/a.txt", "nowhere/*.txt"])
def test_what_is_not_there_of_s3(store: S3Server, place: str) -> None:
    with fails("E101") as caught:
        load_transactions(store.url(place), "basket")
    check_discretion(caught.value)


def test_nobody_there_of_s3() -> None:
    with fails("E101") as caught:
        load_transactions("s3://shop/a?endpoint_override=127.0.0.1:1&scheme=http", "basket")
    check_discretion(caught.value)


PAGE = Path(__file__).parents[3] / "docs" / "tasks" / "data-sources.md"


@pytest.mark.parametrize("example", re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text()))
def test_the_examples_of_the_page_are_datasets(example: str) -> None:
    given = tomllib.loads(example.replace("[[dataset]]", ""))
    usual = {"name": "baskets", "kind": "transactions", "format": "parquet" if "parquet" in example else "csv"}
    assert DatasetSection.model_validate(usual | given).source == given["source"]


def check_discretion(error: ComineError) -> None:
    """Nothing is told of a password at all, and nothing of the place to other parties."""
    assert TOKEN not in repr(error)
    told = outward(error, "north").message
    assert all(word not in told for word in ("127.0.0.1", "shop", "http", "s3", ".txt"))


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()
