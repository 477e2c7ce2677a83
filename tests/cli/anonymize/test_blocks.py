"""`comine anonymize run` with rows in blocks: the same files, and a sentence where rows are needed in memory."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Comine

ROWS = [(f"p{i}", 20 + i * 7 % 45, "mf"[i // 3 % 2], ("flu", "cancer", "fever")[i * 5 % 3], i % 3) for i in range(120)]
HEADER = ("id", "age", "sex", "disease", "visits")
CONFIG = """[anonymize]
source = "{source}"
engine = "{engine}"
identifiers = ["id"]
quasi_identifiers = ["age", "sex"]
sensitive = ["disease"]
insensitive = ["visits"]
algorithm = "{algorithm}"
hash_input = false
max_suppression = 0.05
{more}
[anonymize.columns]
age = {{ kind = "numeric" }}
[anonymize.model]
k = 4
l = 2
[anonymize.hierarchies]
age = {{ builder = "intervals", widths = [5, 10, 20], range = [0, 99] }}
sex = "flat"
"""


@pytest.fixture(autouse=True)
def patients(tmp_path: Path) -> None:
    with (tmp_path / "patients.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *ROWS])
    columns = dict(zip(HEADER, zip(*ROWS, strict=True), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "patients.parquet", row_group_size=50)


def configured(
    folder: Path, engine: str, algorithm: str = "optimal", source: str = "patients.csv", more: str = ""
) -> str:
    name = f"{engine}.toml"
    text = CONFIG.format(engine=engine, algorithm=algorithm, source=source, more=more)
    (folder / name).write_text(text)
    return name


@pytest.mark.parametrize("source", ["patients.csv", "patients.parquet"])
@pytest.mark.parametrize("algorithm", ["optimal", "samarati", "incognito", "datafly", "local-recoding"])
def test_blocks_give_the_files_of_memory(comine: Comine, tmp_path: Path, algorithm: str, source: str) -> None:
    for engine in ("memory", "blocks"):
        ran = comine("anonymize", "run", configured(tmp_path, engine, algorithm, source), "--out", engine)
        assert ran.code == 0, ran.err
    memory, blocks = tmp_path / "memory", tmp_path / "blocks"
    assert {path.name for path in memory.iterdir()} - {path.name for path in blocks.iterdir()} == {"report.html"}
    for name in ("release.csv", "release.parquet"):
        assert (memory / name).read_bytes() == (blocks / name).read_bytes()
    said = [json.loads((place / "certificate.json").read_text()) for place in (memory, blocks)]
    for each in said:
        del each["digest"], each["hashes"]["configuration"], each["hashes"]["labels"]
    assert said[0] == said[1]
    assert comine("anonymize", "verify", "blocks", "--original", source).code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("algorithm", "source", "more"),
    [
        ("mondrian", "patients.csv", ""),
        ("mdav", "patients.csv", ""),
        ("optimal", "sqlite:///patients.db", 'query = "SELECT * FROM patients"'),
    ],
)
def test_what_needs_memory_is_refused_in_blocks(
    comine: Comine, tmp_path: Path, algorithm: str, source: str, more: str
) -> None:
    config = configured(tmp_path, "blocks", algorithm, source, more)
    if algorithm == "mdav":
        path = tmp_path / config
        path.write_text(path.read_text().replace("l = 2\n", "").replace("max_suppression = 0.05\n", ""))
    ran = comine("anonymize", "run", config, "--out", "out")
    assert ran.code == 10
    assert 'engine = "memory"' in ran.err
    assert not (tmp_path / "out").exists()


def test_exploring_needs_memory(comine: Comine, tmp_path: Path) -> None:
    ran = comine("anonymize", "explore", configured(tmp_path, "blocks"), "--k", "2,4", "--out", "out")
    assert ran.code == 10
    assert 'engine = "blocks" is for comine anonymize run' in ran.err


def test_a_source_that_does_not_fit_memory_is_read_in_blocks(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.anonymization.in_blocks.memory_limit", lambda: 10_000)
    assert comine("anonymize", "run", configured(tmp_path, "auto"), "--out", "out").code == 0
    assert not (tmp_path / "out/report.html").exists()
    assert comine("anonymize", "run", configured(tmp_path, "auto", "mondrian"), "--out", "out").code == 0
    assert (tmp_path / "out/report.html").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("p7,", "p8,", "is an identifier, and 1 of its 119 values have several rows"),
        (",m,", ",,", 'Column "sex" lacks 60 of 120 values (rows 0, 1, 2, 6, 7, …)'),
        ("p8,31", "p8,many", 'is declared numeric, but "many" in row 8 is no number'),
    ],
)
def test_wrong_rows_are_refused_in_the_words_of_memory(
    comine: Comine, tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = tmp_path / "patients.csv"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = [
        comine("anonymize", "run", configured(tmp_path, engine), "--out", "out") for engine in ("memory", "blocks")
    ]
    assert [ran.code for ran in found] == [10, 10]
    assert found[0].err == found[1].err
    assert said in found[1].err
