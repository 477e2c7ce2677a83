"""The memory that blocks take does not grow with their number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.mining.partitioned import counted_process

GROUP_ROWS = 150_000
ROW_ITEMS = 12


@pytest.mark.slow
def test_node_and_workers_stay_as_small_as_they_are(tmp_path: Path) -> None:
    """Rows in memory would take 55 MiB more, and their texts far more than that."""
    few, many = (counted(tmp_path, groups) for groups in (2, 10))
    assert many[0] >= 3 * few[0]
    assert many[1] > few[1]
    for small, large in zip(few[2:], many[2:], strict=True):
        assert large < small + (40 << 10)  # KiB


def counted(folder: Path, groups: int) -> list[int]:
    """Blocks, the most frequent pair's count, and the peaks of the node and of its worker."""
    source = folder / f"{groups}.parquet"
    items = pa.array([f"item {number:04}" for number in range(500)])
    codes = np.random.default_rng(1).integers(0, len(items), GROUP_ROWS * ROW_ITEMS)
    offsets = pa.array(np.arange(GROUP_ROWS + 1, dtype=np.int32) * ROW_ITEMS)
    group = pa.table({"items": pa.ListArray.from_arrays(offsets, items.take(pa.array(codes)))})
    with pq.ParquetWriter(source, group.schema) as writer:
        for _ in range(groups):
            writer.write_table(group)
    script = [sys.executable, counted_process.__file__, str(source), str(folder / f"{groups}")]
    found = subprocess.run(script, capture_output=True, text=True, check=True)
    peaks: list[int] = json.loads(found.stdout)
    return peaks
