"""Data of the kind that a job needs."""

from __future__ import annotations

from jobs.data import Data, DataKind, data_kind
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.tables.rows import PartitionedTable


def check_data_kind(spec: JobSpec, kind: DataKind, me: str) -> None:
    """Refuses data that a job cannot use.

    Args:
        spec: The job.
        kind: Of this party's dataset.
        me: This party.

    Raises:
        ConfigurationError: The job needs another kind.
    """
    needed, job = kind_of(spec).data, spec.job
    if kind != needed:
        raise ConfigurationError(
            f'the dataset \'{job.dataset}\' of {me} has kind = "{kind}", and a job with task = "{job.task}" and '
            f'partition = "{job.partition}" needs kind = "{needed}"',
            party=me,
        )


def rows_of(spec: JobSpec, data: Data, me: str) -> Transactions | PartitionedRows:
    """The data of a job that needs transactions, wherever they lie; errors as in `check_data_kind`."""
    check_data_kind(spec, data_kind(data), me)
    assert not isinstance(data, Table | PartitionedTable)
    return data


def transactions_of(spec: JobSpec, data: Data, me: str) -> Transactions:
    """The data of a job that needs transactions in memory.

    Raises:
        ConfigurationError: The data are of another kind, or lie in blocks.
    """
    rows = rows_of(spec, data, me)
    if isinstance(rows, PartitionedRows):
        raise _in_blocks(spec, me)
    return rows


def check_takes_blocks(spec: JobSpec, me: str) -> None:
    """Refuses rows in blocks where the job needs them in memory.

    Raises:
        ConfigurationError: It does.
    """
    if not kind_of(spec).takes_blocks(spec):
        raise _in_blocks(spec, me)


def _in_blocks(spec: JobSpec, me: str) -> ConfigurationError:
    return ConfigurationError(
        f"the rows of the dataset '{spec.job.dataset}' of {me} lie in blocks, and a job of this kind needs them in "
        'memory; write engine = "memory" in [[dataset]], on a machine with room for them',
        party=me,
    )


def table_rows_of(spec: JobSpec, data: Data, me: str) -> Table | PartitionedTable:
    """The data of a job that needs a table, wherever it lies; errors as in `check_data_kind`."""
    check_data_kind(spec, data_kind(data), me)
    assert isinstance(data, Table | PartitionedTable)
    return data
