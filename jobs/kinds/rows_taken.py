"""The rows that a party brings into a job over rows."""

from __future__ import annotations

from jobs.data import Data
from jobs.kinds.data import transactions_of
from jobs.spec.job import JobSpec
from link.session import Session
from mining.data.transactions import Transactions


async def rows_taken(session: Session, spec: JobSpec, data: Data) -> Transactions:
    """This party's rows, without the items that the job excludes.

    Raises:
        ConfigurationError: The data are of another kind.
    """
    transactions = transactions_of(spec, data, session.me)
    if not spec.itemsets.exclude:
        return transactions
    without: Transactions = await session.compute(transactions.without, spec.itemsets.exclude)
    return without
