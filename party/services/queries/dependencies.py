"""Columns that determine each other: what is answered about one then reveals the other, and no auditor sees both.

Each column is audited as if its values could be anything. Where salaries and bonuses go hand in hand, a sum of the one
and a sum of the other, each over other records and each fine, differ by one person's value. Where the grade fixes the
salary, and everybody knows the grades, an average reveals the salary of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mining.data.hints import Hint
from mining.data.tables import Column, Table
from party.services.queries.conditions import column_of, read_column
from party.services.queries.policy import QueriesSection

_AGREES: Final = 0.95
"""The share of records whose value must be the usual one beside the other column's, or the correlation of both."""
_FEW_ROWS: Final = 10  # below it, what most rows have in common says little


def dependencies(policy: QueriesSection, table: Table) -> tuple[Hint, ...]:
    """The pairs of columns of which one nearly fixes the other, as the owner sees them.

    Args:
        policy: What may be asked of the dataset.
        table: Its rows.
    """
    if table.n_rows < _FEW_ROWS:
        return ()
    return tuple(_hints(policy, table))


def _hints(policy: QueriesSection, table: Table) -> Iterator[Hint]:
    for first, second in combinations(policy.columns, 2):
        one, other = column_of(table, first), column_of(table, second)
        numbers = [read_column(policy, table, name) for name in (first, second)]
        if fixes(one.codes, other.codes) or fixes(other.codes, one.codes) or _in_line(*numbers):
            yield Hint(
                "dependent",
                f"'{first}' and '{second}' nearly determine each other, and both may be asked about: each is audited "
                "alone, so two answers, each fine, may reveal somebody's value; let only one of them be asked about",
            )
    for name in policy.columns:
        asked = column_of(table, name)
        for public in policy.public:
            if fixes(_codes(table, public), asked.codes):
                yield Hint(
                    "dependent",
                    f"the public column '{public}' nearly determines '{name}': an average over those who are alike "
                    f"there reveals the value of each; take '{public}' out of public, or '{name}' out of columns",
                )


def fixes(given: NDArray[np.int32], found: NDArray[np.int32]) -> bool:
    """Whether a column's value determines another's in nearly all rows, and is not itself that of a single row.

    Args:
        given: Codes of the one, −1 where it is empty; shape (n,).
        found: Codes of the other.
    """
    both = (given >= 0) & (found >= 0)
    if not both.any() or len(np.unique(found[both])) < 2:
        return False
    times = np.bincount(given[both])
    shared = both.copy()
    shared[both] = times[given[both]] > 1  # a value of one row alone says nothing about others
    rows = int(shared.sum())
    if 2 * rows < int(both.sum()):
        return False
    pairs, counts = np.unique(np.stack([given[shared], found[shared]]), axis=1, return_counts=True)
    usual = np.zeros(int(given.max()) + 1, np.int64)
    np.maximum.at(usual, pairs[0], counts)
    return int(usual.sum()) >= _AGREES * rows and len(np.unique(found[shared])) > 1


def _in_line(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether numbers rise and fall together."""
    both = np.isfinite(one) & np.isfinite(other)
    if int(both.sum()) < _FEW_ROWS or np.ptp(one[both]) == 0 or np.ptp(other[both]) == 0:
        return False
    return bool(abs(np.corrcoef(_ranks(one[both]), _ranks(other[both]))[0, 1]) >= _AGREES)


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places in ascending order, equal numbers at their mean place."""
    _, codes, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: NDArray[np.float64] = ends - (counts - 1) / 2
    return middle[codes]


def _codes(table: Table, name: str) -> NDArray[np.int32]:
    found: Column = column_of(table, name)
    return found.codes
