"""What a party brings into a job: transactions or a table, in memory or in blocks."""

from __future__ import annotations

from typing import Literal

from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.tables.rows import PartitionedTable

Data = Transactions | PartitionedRows | Table | PartitionedTable
DataKind = Literal["transactions", "table"]


def data_kind(data: Data) -> DataKind:
    """What data are called in configuration files."""
    return "table" if isinstance(data, Table | PartitionedTable) else "transactions"


def close(data: Data) -> None:
    """Ends at once what counts rows in blocks; needs nothing of data in memory."""
    if isinstance(data, PartitionedRows | PartitionedTable):
        data.close()
