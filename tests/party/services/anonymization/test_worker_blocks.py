"""A release that a node makes of a table in blocks is that of the table in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.anonymization.spec import AnonymizeSection
from party.config import DatasetSection
from party.services.anonymization.request import digest_of, source_of
from party.services.anonymization.sample import FILE as SAMPLE
from party.services.anonymization.worker import OUT, ROWS, Failed, release

ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "sex"],
    "sensitive": ["disease"],
    "max_suppression": "0.1",
    "columns": {"age": {"kind": "numeric"}},
    "hierarchies": {"age": {"builder": "intervals", "widths": [5, 10, 20], "range": [0, 99]}, "sex": "flat"},
    "model": {"k": 4},
}


def section(source: Path, engine: str, **more: Any) -> AnonymizeSection:
    given = {"name": "patients", "kind": "table", "source": str(source), "format": "parquet", "engine": engine}
    dataset = DatasetSection.model_validate(given)
    return AnonymizeSection.model_validate(ASKED | source_of(dataset) | more)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = range(120)
    columns = {
        "id": [f"p{row}" for row in rows],
        "age": [20 + row * 7 % 45 for row in rows],
        "sex": ["mf"[row // 3 % 2] for row in rows],
        "disease": [("flu", "cancer", "fever")[row * 5 % 3] for row in rows],
        "phone": [str(row) for row in rows],
    }
    path = tmp_path / "patients.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=50)
    return path


def test_blocks_give_the_release_of_memory(tmp_path: Path, source: Path) -> None:
    found = []
    for engine in ("memory", "processes"):
        folder = tmp_path / engine
        folder.mkdir()
        made = release(section(source, engine), folder, "patients", ["id"], "north")
        del made["certificate"]  # of labels that are salted
        found.append((made, (folder / OUT / "release.parquet").read_bytes(), (folder / ROWS).read_bytes()))
        assert {path.name for path in folder.iterdir()} - {SAMPLE} == {OUT, ROWS}
    assert found[0] == found[1]


def test_what_needs_memory_is_refused_in_blocks(tmp_path: Path, source: Path) -> None:
    with pytest.raises(Failed) as failed:
        release(section(source, "processes", algorithm="mdav", max_suppression="0"), tmp_path, "patients", [], "north")
    assert failed.value.error.code == "E100"
    assert not failed.value.of_rows
    assert 'engine = "memory"' in failed.value.error.message


def test_persons_with_several_rows_are_refused_in_blocks(tmp_path: Path, source: Path) -> None:
    table = pq.read_table(source)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), source)
    with pytest.raises(Failed) as failed:
        release(section(source, "processes"), tmp_path, "patients", ["id"], "north")
    assert failed.value.error.code == "E101"
    assert failed.value.of_rows


@pytest.mark.parametrize("engine", ["memory", "processes"])
def test_a_copy_of_another_encoding_gives_the_same_release(tmp_path: Path, source: Path, engine: str) -> None:
    """By the readers of jobs; nothing of the copy stays, and no key that says how to read it is another request."""
    table = pq.read_table(source)
    rows = [table.column_names, *(map(str, row.values()) for row in table.to_pylist())]
    text = "".join(";".join(row) + "\n" for row in rows)
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "wide.csv").write_text(text, encoding="utf-16")
    found = []
    for name, more in (("plain.csv", {}), ("wide.csv", {"encoding": "utf-16"})):
        given = {"name": "patients", "kind": "table", "source": str(tmp_path / name), "format": "csv", "separator": ";"}
        dataset = DatasetSection.model_validate(given | {"engine": engine} | more)
        folder = tmp_path / f"{engine}-{name}"
        folder.mkdir()
        spec = AnonymizeSection.model_validate(ASKED | source_of(dataset))
        made = release(spec, folder, "patients", ["id"], "north")
        found.append((made["rows"], (folder / OUT / "release.parquet").read_bytes()))
        assert {path.name for path in folder.iterdir()} - {SAMPLE} == {OUT, ROWS}
    assert found[0] == found[1]


def test_the_password_of_a_source_makes_no_other_request() -> None:
    url = {"name": "patients", "kind": "table", "source": "mysql://ann@host/shop", "format": "sql", "query": "SELECT 1"}
    digests = {
        digest_of(AnonymizeSection.model_validate(ASKED | source_of(DatasetSection.model_validate(url | more))), {})
        for more in ({}, {"password_env": "WORD"}, {"password_file": "/word"})
    }
    assert len(digests) == 1
