"""What a party brings into a job, of the kind that the job needs."""

from __future__ import annotations

from jobs.data_kinds import Kind, check_kind
from jobs.spec import JobSpec
from mining.tables import Table
from mining.transactions import Transactions

Data = Transactions | Table


def kind_of(data: Data) -> Kind:
    """What data are called in configuration files."""
    return "table" if isinstance(data, Table) else "transactions"


def transactions_of(spec: JobSpec, data: Data, me: str) -> Transactions:
    """The data of a job that mines rows; errors as in `check_kind`."""
    check_kind(spec, kind_of(data), me)
    assert isinstance(data, Transactions)
    return data


def table_of(spec: JobSpec, data: Data, me: str) -> Table:
    """The table of a vertical job, or of one that learns a model; errors as in `check_kind`."""
    check_kind(spec, kind_of(data), me)
    assert isinstance(data, Table)
    return data
