"""Decisions of an auditor, and the sets of records that queries are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import InputDataError

Reason = Literal["disclosure", "class", "size", "overlap", "too many", "unsure"]
"""Why a query is denied: an answer could reveal a value; the column answers queries of another class; the set is too
small or too large; it shares too many records with an earlier one; too many were answered; it cannot be decided."""

Members = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a query is answered.

    Attributes:
        reason: Why it is denied; None where it is answered. It follows from the queries and the answers so far, and
            from nothing else, so that it reveals nothing that was not known.
    """

    reason: Reason | None = None

    @property
    def allowed(self) -> bool:
        """Whether it is answered."""
        return self.reason is None


ANSWERED = Decision()


def owners(of: ArrayLike | None, n: int) -> Members:
    """Whose value each record is, shape (n,).

    Two values of one person at different times are different; that everybody is taken to know.

    Args:
        of: A number for each record, which records share that are values of one person at different times; None where
            each record is a person's only value.
        n: How many records there are.
    """
    return np.arange(n) if of is None else np.asarray(of, np.int64)


def members(query: ArrayLike, n: int) -> Members:
    """The records of a query, ascending, each once.

    Args:
        query: Their numbers.
        n: How many records there are.

    Raises:
        InputDataError: There is none, or a number is none of a record.
    """
    found = np.unique(np.asarray(query, np.int64))
    if not len(found):
        raise InputDataError("the query is about no record; widen its condition")
    if found[0] < 0 or found[-1] >= n:
        raise InputDataError(f"a query names a record beyond the {n:,} that there are")
    return found
