"""What a source is expected to take in memory, before it is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_SHARE: Final = Decimal("0.25")  # of a process's memory, what rows may take in it where nothing else is said

# Bytes in memory while a source is read, and of columns of bits while it is counted; measured on the retail data.
_PER_CELL: Final = 32
_PER_BYTE: Final = 8
_PER_PACKED_BYTE: Final = 24


def expected_bytes(path: Path, data_format: str) -> int:
    """What a file is expected to take in memory; 0 where it is none or cannot be read, which whoever reads it tells.

    Args:
        path: The file; also that of a database.
        data_format: How rows are written in it.
    """
    try:
        if not path.is_file():  # to open a pipe would wait for whoever writes to it
            return 0
        if data_format == "parquet":
            found = pq.read_metadata(path)
            groups = (found.row_group(number) for number in range(found.num_row_groups))
            columns = (group.column(place) for group in groups for place in range(group.num_columns))
            return _PER_CELL * sum(int(column.num_values) for column in columns)
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return (_PER_PACKED_BYTE if packed else _PER_BYTE) * path.stat().st_size
    except (OSError, ValueError, pa.ArrowException):
        return 0
