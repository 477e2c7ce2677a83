"""What a table is expected to take in memory, beside what it takes, for several shapes of tables."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from mining.data.loading import load_table
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.tables.expected import ExpectedTable, expected_table
from tests.examples import in_turn
from tests.mining.partitioned import read_process

pytestmark = pytest.mark.turn(6)

FACTOR = 1.5
ROWS = 40_000


def _ids(n: int) -> pa.Array:
    numbers = pa.array(np.random.default_rng(1).permutation(n)).cast(pa.string())
    return pc.binary_join_element_wise("person-", pc.utf8_lpad(numbers, 8, "0"), "")


def _texts(n: int, values: int, columns: int) -> pa.Table:
    random = np.random.default_rng(2)
    cells = {
        f"c{k}": pc.binary_join_element_wise("value ", pa.array(random.integers(0, values, n)).cast(pa.string()), "")
        for k in range(columns)
    }
    return pa.table({"id": _ids(n), **cells})


def _numbers(n: int) -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "id": pa.array(random.permutation(n)),
            "measured": pa.array(random.normal(size=n)),
            "small": pa.array(random.integers(0, 90, n)),
            "large": pa.array(random.integers(0, 10**6, n).astype(np.int32)),
            "day": pa.array(random.integers(0, 20_000, n).astype(np.int32)).cast(pa.date32()),
            "yes": pa.array(random.random(n) < 0.5),
        }
    )


def _uneven(n: int) -> pa.Table:
    cells = np.minimum(np.random.default_rng(4).zipf(1.6, n), 10**6)
    texts = pa.array([None if cell == 2 else f"v{cell}" for cell in cells])
    return pa.table({"id": _ids(n), "a": texts, "b": texts.dictionary_encode(), "c": pa.array(["one"] * n)})


SHAPES: dict[str, Callable[[int], pa.Table]] = {
    "texts of few values": lambda n: _texts(n, 20, 8),
    "texts of some hundred values": lambda n: _texts(n, 700, 4),
    "texts of many values": lambda n: _texts(n, 10**9, 2),
    "numbers": _numbers,
    "wide": lambda n: _texts(n // 20, 5, 120),
    "ids alone": lambda n: pa.table({"id": _ids(n)}),
    "texts of uneven frequency": _uneven,
}


def written(table: pa.Table, path: Path, rows_of_group: int | None = None) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows_of_group)
    else:
        plain = [column.cast(column.type.value_type) if _is_coded(column) else column for column in table.columns]
        pa_csv.write_csv(pa.table(plain, table.column_names), path)
    return path


def _is_coded(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def expected(path: Path, ids: Sequence[str] = ("id",)) -> ExpectedTable:
    return expected_table(TableSource(str(path), path.suffix[1:], id_columns=tuple(ids)))


@pytest.mark.turn(7)
@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_kept_is_foreseen(shape: str, form: str, tmp_path: Path) -> None:
    path = written(SHAPES[shape](ROWS), tmp_path / f"table.{form}", ROWS // 2)
    table, found = load_table(path, form, id_columns=["id"]), expected(path)
    kept = sum(ids.nbytes for ids in table.ids)
    kept += sum(column.values.nbytes + column.codes.nbytes for column in table.columns)
    assert kept / FACTOR < found.kept < kept * FACTOR
    assert found.rows == pytest.approx(table.n_rows, rel=0.02)
    assert found.peak > found.kept


@pytest.mark.slow
def test_what_it_takes_to_read_is_foreseen(tmp_path: Path) -> None:
    """The growth of a process's resident memory, whose buffers alone take some dozens of MiB."""
    paths = {
        f"{shape}, {form}": written(SHAPES[shape](10 * ROWS), tmp_path / f"{number}.{form}")
        for number, (shape, form) in enumerate(
            in_turn(product(("texts of few values", "texts of many values", "numbers"), ("parquet", "csv")), 6)
        )
    }
    short = {path.suffix: written(_texts(10, 3, 1), tmp_path / f"short{path.suffix}") for path in paths.values()}
    for shape, path in paths.items():
        script = [sys.executable, read_process.__file__, str(path), str(short[path.suffix])]
        taken = json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout)
        assert taken / FACTOR < expected(path).peak < taken * FACTOR, shape


def test_compressed_text_is_foreseen_as_plain_text(tmp_path: Path) -> None:
    path = written(_texts(ROWS, 50, 3), tmp_path / "plain.csv")
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert expected(packed).kept == pytest.approx(expected(path).kept, rel=0.2)


@pytest.mark.parametrize("options", [{"use_dictionary": False}, {"write_statistics": False}, {"compression": "none"}])
def test_files_of_other_writers(options: dict[str, object], tmp_path: Path) -> None:
    """Without a dictionary all texts are taken to be distinct: too much, not too little."""
    path = tmp_path / "table.parquet"
    pq.write_table(_numbers(ROWS), path, **options)
    table, found = load_table(path, "parquet", id_columns=["id"]), expected(path)
    kept = sum(ids.nbytes for ids in table.ids)
    kept += sum(column.values.nbytes + column.codes.nbytes for column in table.columns)
    assert kept / FACTOR < found.kept < 2 * kept


def test_what_cannot_be_read_is_foreseen_by_its_size(tmp_path: Path) -> None:
    assert expected(tmp_path / "absent.csv") == ExpectedTable(0, 0, 0)
    (tmp_path / "wrong.csv").write_text("id,a\n1,2\n" * 10)
    wrong = TableSource(str(tmp_path / "wrong.csv"), "csv", separator="no")
    assert expected_table(wrong).peak == 8 * 90
    (tmp_path / "wrong.parquet").write_bytes(b"nothing")
    assert expected(tmp_path / "wrong.parquet").peak == 0
    for text, rows in (("", 0), ("id,a\n", 0), ("id,a\n1,2", 1)):
        (tmp_path / "short.csv").write_text(text)
        assert expected(tmp_path / "short.csv").rows == rows
    pq.write_table(
        pa.table({"id": pa.array([], pa.string()), "a": pa.array([], pa.int8())}), tmp_path / "empty.parquet"
    )
    assert expected(tmp_path / "empty.parquet").kept == 0
