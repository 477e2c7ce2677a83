"""What a source is expected to take in memory, before it is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

MEMORY_SHARE: Final = Decimal("0.25")  # of a process's memory, what rows may take in it where nothing else is said

_GZIP: Final = b"\x1f\x8b"
_PACKED: Final = (".gz", ".bz2", ".zst")


class Rates(NamedTuple):
    """Bytes of memory that whoever reads a file takes, measured.

    Attributes:
        cell: For each cell of a Parquet file.
        byte: For each byte of text.
        packed: For each byte of compressed text.
    """

    cell: int
    byte: int
    packed: int


# While a source is read, and of columns of bits while it is counted; measured on the retail data.
MINED: Final = Rates(32, 8, 24)


def expected_bytes(path: Path, data_format: str, rates: Rates = MINED) -> int:
    """What a file is expected to take in memory; 0 where it is none or cannot be read, which whoever reads it tells.

    Args:
        path: The file; also that of a database.
        data_format: How rows are written in it.
        rates: What is done with them.
    """
    try:
        if not path.is_file():  # to open a pipe would wait for whoever writes to it
            return 0
        if data_format == "parquet":
            found = pq.read_metadata(path)
            groups = (found.row_group(number) for number in range(found.num_row_groups))
            columns = (group.column(place) for group in groups for place in range(group.num_columns))
            return rates.cell * sum(int(column.num_values) for column in columns)
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP or path.suffix in _PACKED
        return (rates.packed if packed else rates.byte) * path.stat().st_size
    except (OSError, ValueError, pa.ArrowException):
        return 0
