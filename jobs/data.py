"""What a party brings into a job: transactions, or a table."""

from __future__ import annotations

from typing import Literal

from mining.data.tables import Table
from mining.data.transactions import Transactions

Data = Transactions | Table
DataKind = Literal["transactions", "table"]


def data_kind(data: Data) -> DataKind:
    """What data are called in configuration files."""
    return "table" if isinstance(data, Table) else "transactions"
