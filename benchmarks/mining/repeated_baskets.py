"""Baskets of a shop as a Parquet file of any length, made by repeating them with random omissions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets import Case
from mining.data.loading import load_transactions

OMITTED = 0.1  # of the items


def repeat(case: Case, least_rows: int, file: Path) -> int:
    """Writes the rows as often as needed to have so many, a row group each time; returns how many it wrote."""
    data = load_transactions(case.path, "basket")
    lengths = data.lengths
    owners = np.repeat(np.arange(data.n_rows), lengths)
    names = pa.array(data.items)
    random = np.random.default_rng(1)
    repeats = -(-least_rows // data.n_rows)
    with pq.ParquetWriter(file, pa.schema({"items": pa.list_(pa.string())})) as writer:
        for _ in range(repeats):
            kept = random.random(len(data.indices)) >= OMITTED
            offsets = np.zeros(data.n_rows + 1, np.int32)
            np.cumsum(np.bincount(owners[kept], minlength=data.n_rows), out=offsets[1:])
            cells = pa.DictionaryArray.from_arrays(pa.array(data.indices[kept]), names).cast(pa.string())
            writer.write_table(pa.table({"items": pa.ListArray.from_arrays(pa.array(offsets), cells)}))
    return repeats * data.n_rows
