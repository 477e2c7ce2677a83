"""Every CSV file that comine writes: no cell of it is run by a spreadsheet, and all come back as they were."""

from __future__ import annotations

import ast
import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize import verifier
from anonymize.certifying import write_cells
from anonymize.verification.rows import read_parquet, read_release
from coordinator.frequency.files import save_export
from jobs.results.tables import csv_chunks
from link.files.spreadsheet import as_named
from tests.errors import fails
from tests.link.test_spreadsheet import TEXT, is_formula

ROOT = Path(__file__).parents[2]
LAYERS = ("client", "comine", "coordinator", "crypto", "jobs", "ldp", "link", "mining", "party", "relay", "anonymize")
WRITERS = {"writer", "DictWriter", "write_csv", "CSVWriter", "to_csv", "to_excel"}
FOR_MACHINES = {"anonymize/hierarchies/files.py", "coordinator/anonymisation/releases.py"}
"""What hierarchies are read from, by comine alone: the one that writes such files, and requests with their rows."""
HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1", "\r=1", "x;=1+1", "'=1", "-5"]


def test_nothing_else_writes_csv() -> None:
    found = set()
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            source = path.read_text()
            if not any(name in source for name in WRITERS):
                continue
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITERS:
                    found.add(str(path.relative_to(ROOT)))
    assert found == {"link/files/spreadsheet.py"} | FOR_MACHINES


def is_harmless(text: str) -> bool:
    return not any(is_formula(part) for row in csv.reader(io.StringIO(text, newline="")) for part in row)


def cut_elsewhere(text: str) -> bool:
    """Whether a spreadsheet that cuts cells at semicolons or tabs finds no formula either; numbers may begin a line."""
    cells = (
        cell for sign in ";\t" for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign) for cell in row
    )
    return not any(is_formula(cell.partition(",")[0]) for cell in cells)


@given(st.lists(st.tuples(TEXT | st.none(), st.lists(TEXT, max_size=3), st.integers(-9, 9)), max_size=6), TEXT)
def test_tables_are_harmless_and_come_back(rows: list[tuple[str | None, list[str], int]], name: str) -> None:
    texts, lists, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(texts, pa.string()), pa.array(lists, pa.list_(pa.string())), pa.array(numbers, pa.int64())]
    text = b"".join(csv_chunks(pa.table(columns, [f"{name}!", "items", "n"]))).decode()
    assert is_harmless(text)
    assert cut_elsewhere(text)
    head, *cells = csv.reader(io.StringIO(text, newline=""))
    assert as_named(head[0]) == f"{name}!"
    assert [(as_named(a), json.loads(b), int(c)) for a, b, c in cells] == [(t or "", i, n) for t, i, n in rows]


@given(st.lists(st.tuples(TEXT.filter(lambda text: "\x00" not in text), st.floats(allow_nan=False)), min_size=1))
def test_a_release_is_harmless_and_is_read_as_it_was(tmp_path_factory: object, rows: list[tuple[str, float]]) -> None:
    table = pa.table({"=job": [text for text, _ in rows], "wage": [number for _, number in rows]})
    file = io.StringIO(newline="")
    write_cells(file, table)
    assert is_harmless(file.getvalue().replace("-inf", "0"))
    assert cut_elsewhere(file.getvalue().replace("-inf", "0"))
    folder: Path = tmp_path_factory.mktemp("release", numbered=True)  # type: ignore[attr-defined]
    (folder / "release.csv").write_text(file.getvalue(), newline="", encoding="utf-8")
    pyarrow.parquet.write_table(table, folder / "release.parquet")
    read = read_release(folder / "release.csv")
    assert read.column_names == ["=job", "wage"]
    assert read["=job"].to_pylist() == [text for text, _ in rows]
    assert verifier.formats_agree(read, read_parquet(folder / "release.parquet")).ok


async def pieces(*parts: tuple[str, bytes]) -> AsyncIterator[tuple[str, bytes]]:
    for part in parts:
        yield part


def test_what_a_node_exports_is_written_again(tmp_path: Path) -> None:
    """The node of another organisation may send any CSV; an honest one's comes out as it was."""
    honest = 'round,value,estimate\n1,"a, b",-2.5\n1,\'=x,3\n'
    hostile = "value\n" + "".join(f'"{text}"\n' for text in HOSTILE)
    sent = pieces(
        ("collection.json", b"{}"), ("estimates.csv", hostile[:9].encode()), ("estimates.csv", hostile[9:].encode())
    )
    assert asyncio.run(save_export(tmp_path, sent)) == ["collection.json", "estimates.csv"]
    text = (tmp_path / "estimates.csv").read_text()
    assert is_harmless(text)
    assert {path.name for path in tmp_path.iterdir()} == {"collection.json", "estimates.csv"}
    (tmp_path / "estimates.csv").unlink()
    asyncio.run(save_export(tmp_path, pieces(("estimates.csv", honest.encode()))))
    assert (tmp_path / "estimates.csv").read_text() == honest


@pytest.mark.parametrize("data", [b"\xff", b'value\n"x', b"a\n" + b"x" * 140_000])
def test_an_export_that_is_no_csv_is_refused(data: bytes, tmp_path: Path) -> None:
    with fails("E402"):
        asyncio.run(save_export(tmp_path, pieces(("estimates.csv", data))))


def test_numbers_in_tables_stay_numbers() -> None:
    table = pa.table({"low": [-5, 3], "phone": ["+491701234567", "-5"], "share": [-0.25, float("-inf")]})
    assert b"".join(csv_chunks(table)) == b"low,phone,share\n-5,+491701234567,-0.25\n3,-5,-inf\n"
    assert re.fullmatch(r"[^']*", b"".join(csv_chunks(table)).decode())
