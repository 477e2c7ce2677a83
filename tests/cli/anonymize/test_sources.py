"""`comine anonymize run` reads rows where they lie, by the readers of jobs: the release is that of one plain file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.anonymize.patients import HEADER, ROWS, Configure
from tests.cli.conftest import Comine
from tests.mysql_server import PASSWORD as MYSQL_PASSWORD
from tests.mysql_server import mysql_server
from tests.postgres_server import PASSWORD as POSTGRES_PASSWORD
from tests.postgres_server import postgres_server

pytestmark = pytest.mark.turn(3)

PLAIN = 'source = "patients.csv"'


def _lines(path: Path, rows: list[tuple[object, ...]], encoding: str = "utf-8") -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows([HEADER, *rows])


def _encoded(folder: Path) -> str:
    _lines(folder / "utf16.csv", list(ROWS), "utf-16")
    return 'source = "utf16.csv"\nencoding = "utf-16"'


def _several(folder: Path) -> str:
    for place, some in enumerate((ROWS[:50], ROWS[50:])):
        _lines(folder / "parts" / f"{place}.csv", list(some))
    return 'source = "parts/*.csv"'


def _parquet(folder: Path) -> str:
    (folder / "all").mkdir()
    for place, some in enumerate((ROWS[:50], ROWS[50:])):
        cells = zip(*some, strict=True)
        table = pa.table({name: [str(each) for each in column] for name, column in zip(HEADER, cells, strict=True)})
        pq.write_table(table, folder / "all" / f"{place}.parquet")
    return 'source = "all"\nformat = "parquet"'


@pytest.mark.parametrize("engine", ["memory", "blocks"])
@pytest.mark.parametrize("lay", [_encoded, _several, _parquet])
def test_the_release_is_that_of_one_plain_file(
    comine: Comine, configure: Configure, tmp_path: Path, lay: Callable[[Path], str], engine: str
) -> None:
    config = tmp_path / configure(top=f'engine = "{engine}"')
    assert comine("anonymize", "run", config.name, "--out", "plain").code == 0
    source = lay(tmp_path)
    config.write_text(config.read_text().replace(PLAIN, source))
    ran = comine("anonymize", "run", config.name, "--out", "out")
    assert ran.code == 0, ran.err
    assert (tmp_path / "out" / "release.csv").read_bytes() == (tmp_path / "plain" / "release.csv").read_bytes()
    assert "encoding" not in (tmp_path / "out" / "certificate.json").read_text()


def test_a_sheet_of_a_workbook(comine: Comine, tmp_path: Path) -> None:
    book = Path(__file__).parents[2] / "mining" / "data" / "sales.xlsx"
    (tmp_path / "a.toml").write_text(
        f'[anonymize]\nsource = "{book}"\nquasi_identifiers = ["id", "item"]\nalgorithm = "samarati"\n'
        'max_suppression = 1\nsuppressed = "keep"\n[anonymize.model]\nk = 2\n'
        '[anonymize.hierarchies]\nid = "flat"\nitem = "flat"\n'
    )
    ran = comine("anonymize", "run", "a.toml", "--out", "out")
    assert ran.code == 0, ran.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "word"),
    [
        pytest.param(postgres_server, POSTGRES_PASSWORD, id="postgres"),
        pytest.param(mysql_server, MYSQL_PASSWORD, id="mysql"),
    ],
)
def test_a_server_asks_for_a_password(
    comine: Comine,
    configure: Configure,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: Callable[[], AbstractContextManager[Any]],
    word: str,
) -> None:
    config, kept = tmp_path / configure(), tmp_path / "word"
    kept.write_text(word)
    kept.chmod(0o600)
    monkeypatch.setenv("WORD", word)
    assert comine("anonymize", "run", config.name, "--out", "plain").code == 0
    usual = config.read_text()
    columns = ", ".join(f"{name} {'int' if name in ('age', 'visits') else 'varchar(20)'}" for name in HEADER)
    rows = ", ".join(f"({', '.join(repr(cell) for cell in row)})" for row in ROWS)
    with server() as found:
        found.run(f"CREATE TABLE patients ({columns})", f"INSERT INTO patients VALUES {rows}")
        url = f'source = "{found.url}"\nquery = "SELECT {", ".join(HEADER)} FROM patients"'
        for how in ('password_env = "WORD"', 'password_file = "word"'):
            config.write_text(usual.replace(PLAIN, f"{url}\n{how}"))
            ran = comine("anonymize", "run", config.name, "--out", "out")
            assert ran.code == 0, ran.err
            release = (tmp_path / "out" / "release.csv").read_bytes()
            assert release == (tmp_path / "plain" / "release.csv").read_bytes()
            assert not [each for each in ("password", word) if each in (tmp_path / "out/certificate.json").read_text()]
        kept.write_text("another")
        ran = comine("anonymize", "run", config.name, "--out", "out")
        assert ran.code != 0
        assert "another" not in ran.err


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ('source = "postgres://ann:secret@host/shop"\nquery = "SELECT 1"', "holds a password"),
        ('source = "patients.csv"\npassword_env = "WORD"', "mean nothing to this source"),
        (
            'source = "mysql://ann@host/shop"\nquery = "SELECT 1"\npassword_env = "A"\npassword_file = "b"',
            "exclude each other",
        ),
        ('source = "a.parquet"\nencoding = "latin-1"', "encoding is for text files"),
        ('source = "patients.csv"\nencoding = "klingon"', "encoding is not known"),
        ('source = "patients.csv"\nsheet = "2026"', "sheet is for workbooks"),
        ('source = "ftp://host/patients.csv"', "begins with a scheme that is not read here"),
    ],
)
def test_what_does_not_fit_the_source_is_one_sentence(
    comine: Comine, configure: Configure, tmp_path: Path, source: str, sentence: str
) -> None:
    config = tmp_path / configure()
    config.write_text(config.read_text().replace(PLAIN, source))
    ran = comine("anonymize", "run", config.name, "--out", "out")
    assert ran.code == 10
    assert sentence in ran.err
    assert "secret" not in ran.err
    assert ran.err.count("\n") <= 6
