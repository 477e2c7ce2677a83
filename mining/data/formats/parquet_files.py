"""Several Parquet files as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from link.errors import InputDataError
from mining.data.formats.table_sources import BATCH_ROWS, parquet_errors


def join_parquet(parts: Sequence[tuple[Path, Mapping[str, str | None]]], whole: Path) -> None:
    """Writes the rows of several files into one, in their order, batch by batch.

    Args:
        parts: Files with the same columns of the same types, and by file the cells of further columns.
        whole: The new file.

    Raises:
        InputDataError: A file cannot be read, or has other columns.
    """
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None
    try:
        for path, cells in parts:
            with parquet_errors(path), pq.ParquetFile(path, pre_buffer=False) as file:
                added = [pa.field(name, pa.string()) for name in cells]
                own = pa.schema([*(field.remove_metadata() for field in file.schema_arrow), *added])
                if schema is None or writer is None:
                    schema, writer = own, pq.ParquetWriter(whole, own)
                if own != schema:
                    raise InputDataError(
                        f"{path} has other columns, or columns of other types, than the first file; all need the same."
                    )
                for batch in file.iter_batches(BATCH_ROWS):
                    more = [pa.array([text] * batch.num_rows, pa.string()) for text in cells.values()]
                    writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, *more], schema=schema))
    finally:
        if writer is not None:
            writer.close()
