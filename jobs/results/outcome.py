"""What a job comes to at one party."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from jobs.kinds.finding import Finding
from mining.joint.spent import Spent


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job comes to at one party.

    Attributes:
        n_rows: Transactions of all parties together; in a vertical job the rows that all parties have. None where
            nobody learns how many these are.
        strategy: The strategy that was taken; of an alignment its mode, of a model what its numbers are made of.
        finding: What was found, at a party that learns it.
        positions: How many public positions the rows of all parties were given, where `n_rows` is not known.
        alignment: This party's own rows by their ids, and their positions; for its own use alone.
        spent: What an estimate has cost each record, also at a party that does not learn it.
    """

    n_rows: int | None
    strategy: str
    finding: Finding | None = None
    positions: int | None = None
    alignment: pa.Table | None = None
    spent: Spent | None = None
