"""Where the rows of a dataset are, and how they are written there."""

from __future__ import annotations

from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.sources import AnySource
from party.config import DatasetSection


def source_of(dataset: DatasetSection) -> AnySource:
    """Where the rows of a dataset are."""
    if dataset.kind == "table":
        return table_at(dataset)
    return transactions_at(dataset)


def table_at(dataset: DatasetSection) -> TableSource:
    """Where the rows of a dataset that is a table are."""
    return TableSource(dataset.source, dataset.format, dataset.separator, dataset.query, dataset.id, dataset.options)


def transactions_at(dataset: DatasetSection) -> TransactionSource:
    """Where the rows of a dataset of transactions are."""
    return TransactionSource(
        dataset.source,
        dataset.format,
        dataset.separator,
        dataset.query,
        dataset.id_column,
        dataset.item,
        dataset.options,
    )
