"""Totals that joint models are made of: opened by secure sum, and checked against what totals can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import secure_sum, word_for
from link.disclosure import Declared
from link.errors import InputDataError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.tally import MAX_ROWS, Addends, no_sum

Model = TypeVar("Model")


@dataclass(frozen=True, slots=True)
class Learnt(Generic[Model]):
    """What comes out at one party.

    Attributes:
        n_rows: Rows of all parties together, or that all have in common.
        model: None where this party does not learn it.
    """

    n_rows: int
    model: Model | None


async def total_rows(session: Session, secrets: PairwiseSecrets, addend: int | Addends) -> int:
    """Opens the number N of rows to all, label `rows`; a step of the job.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        addend: How many rows this party has, or its share, shape (1,), of the number modulo 2^64.

    Raises:
        InputDataError: There are no rows.
        ProtocolViolation: The number is none that parties can have.
    """

    async def take() -> Known:
        words = np.array([addend], np.uint64).reshape(1)
        total = await secure_sum(session, secrets, words, label="rows")
        if total is None:
            raise AssertionError("the number of rows is opened to all")
        return Known(int(total[0]))

    n_rows = int((await step(session, "number of rows", take)).public)
    if n_rows > MAX_ROWS:
        raise no_sum(session)
    if not n_rows:
        raise no_rows()
    return n_rows


def rows_opening(parties: Sequence[str]) -> Declared:
    """The statement's line for `total_rows`."""
    return Declared("rows", frozenset(parties), "number of rows of all parties together", 1, "at the start")


async def total_counts(
    session: Session,
    secrets: PairwiseSecrets,
    addends: Addends,
    n_rows: int,
    *,
    label: str,
    to: Sequence[str] | None = None,
) -> NDArray[np.int64] | None:
    """Opens counts of rows.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        addends: Shape (m,), this party's counts, or its shares of them modulo 2^64.
        n_rows: N; no count is above it.
        label: A label of the job's statement, for at least m values.
        to: Who learns them; all parties by default.

    Returns:
        Shape (m,); None to a party that does not learn them.

    Raises:
        ProtocolViolation: A count is none that rows can have.
    """
    totals = await secure_sum(session, secrets, addends.astype(word_for(n_rows)), label=label, to=to)
    if totals is None:
        return None
    if (totals > n_rows).any():
        raise no_sum(session)
    return totals.astype(np.int64)


def no_rows() -> InputDataError:
    """There is nothing to learn from."""
    return shareable(
        InputDataError("the parties have no row to learn from; check their datasets, and how rows are aligned")
    )
