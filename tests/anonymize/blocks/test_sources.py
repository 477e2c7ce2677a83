"""Files are read in blocks as they are read whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonymize.blocks import sources
from anonymize.blocks.sources import CsvBlocks, ParquetBlocks
from anonymize.reading import read_csv, read_parquet
from link.errors import InputDataError

CSV = '\ufeff"id";"a note"\n' + "".join(f'{row};"line {row % 7}\nwith ""quotes"""\n' for row in range(400))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(sources, "BLOCK_ROWS", 17)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(gzip.compress(CSV.encode()) if suffix.endswith("gz") else CSV.encode())
    found = CsvBlocks(path, ";")
    whole = read_csv(path, ";")
    assert found.column_names == whole.column_names
    blocks = list(found.blocks(["a note", "id"]))
    assert len(blocks) > 3
    assert pa.concat_tables(blocks).equals(whole.select(["a note", "id"]))


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    given = pa.table({"a": pa.array(["x", "y"] * 50).dictionary_encode(), "b": range(100), "c": [1.5] * 100})
    pq.write_table(given, path, row_group_size=40)
    found = ParquetBlocks(path)
    blocks = list(found.blocks(["c", "a"]))
    assert found.column_names == ["a", "b", "c"]
    assert len(blocks) >= 6
    assert (
        pa.concat_tables(blocks).unify_dictionaries().to_pylist() == read_parquet(path).select(["c", "a"]).to_pylist()
    )
    assert blocks[0].schema == read_parquet(path).select(["c", "a"]).schema


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\n\n",
        b"a,a\n1,2\n",
        b'a,b\n"1,2\n',
        b"a,b\n1\n",
        b"a,b\n1,2,3\n",
        b"a\n\xff\xfe\n",
        b"\xff\n",
        b"\x1f\x8b\n",
    ],
)
def test_wrong_csv_is_refused_as_when_it_is_read_whole(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(contents)
    with pytest.raises(InputDataError) as whole:
        read_csv(path)
    with pytest.raises(InputDataError) as blocks:
        list(CsvBlocks(path, ",").blocks(["a"]))
    assert blocks.value.message == whole.value.message


@pytest.mark.parametrize("contents", [None, b"", b"PAR1", b"PAR1 something PAR1"])
def test_wrong_parquet_is_refused_as_when_it_is_read_whole(tmp_path: Path, contents: bytes | None) -> None:
    path = tmp_path / "rows.parquet"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(InputDataError) as whole:
        read_parquet(path)
    with pytest.raises(InputDataError) as blocks:
        ParquetBlocks(path)
    assert blocks.value.message == whole.value.message
