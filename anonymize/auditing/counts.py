"""Counts: how many records of a set have a sensitive attribute, and how many records meet a public condition.

Counts of a 0/1 attribute determine values that sums of real ones would not: x0 + x1 + x2 = 1, x1 + x3 = 1 and
x0 + x3 = 1 have one solution of zeros and ones. To decide exactly is coNP-hard, so that is done for few records; for
each answer that the earlier ones allow, an integer program looks for solutions with each record 0 and with it 1.
Beyond that `OverlapControl` bounds how many queries any attack needs.

A count of records by public attributes reveals nothing of the sensitive one, but whether somebody is among the records:
`SizeControl` refuses small sets and nearly complete ones. Alone it is defeated by trackers, differences of two large
sets, so both belong together.

Source: Kleinberg, Papadimitriou and Raghavan, "Auditing boolean attributes", PODS 2000 (JCSS 66, 2003); Dobkin, Jones
and Lipton, "Secure databases: protection against user influence", ACM TODS 4(1), 1979.
"""

from __future__ import annotations

from math import floor, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.auditing.decision import ANSWERED, Decision, Members, members, owners
from link.errors import ConfigurationError

MOST_EXACT = 60
"""Records that an exact decision is made for."""


class BooleanAuditor:
    """Decides on counts of a 0/1 attribute over sets of records, exactly.

    A value is disclosed if all solutions of the answered counts agree on it. A query is denied if this would hold after
    any of its possible answers. Records that are in no answered query and not in this one cannot be disclosed.

    Args:
        n: How many records there are.
        most: In how many records the queries may be linked; beyond it a query is denied as undecided.
    """

    def __init__(self, n: int, most: int = MOST_EXACT) -> None:
        self.n, self._most = n, most
        self._sets: list[Members] = []
        self._counts: list[int] = []

    def decide(self, query: ArrayLike) -> Decision:
        """Whether the count over some records may be answered; the query as for `SumAuditor.decide`."""
        chosen = members(query, self.n)
        linked, records = self._linked(chosen)
        if len(records) > self._most:
            return Decision("unsure")
        rows = np.array([np.isin(records, self._sets[k]) for k in linked] + [np.isin(records, chosen)], float)
        before = [float(self._counts[k]) for k in linked]
        for answer in range(len(chosen) + 1):
            solutions = _solutions(rows, np.array([*before, float(answer)]))
            if solutions is not None and not (solutions[0] & solutions[1]).all():
                return Decision("disclosure")
        return ANSWERED

    def answer(self, query: ArrayLike, count: int) -> None:
        """Takes in a count that is answered. It must have been allowed."""
        self._sets.append(members(query, self.n))
        self._counts.append(count)

    def extend(self, more: int) -> NDArray[np.int64]:
        """Adds records: new ones, or the new values of old ones.

        Returns:
            Their numbers.
        """
        self.n += more
        return np.arange(self.n - more, self.n)

    def _linked(self, chosen: Members) -> tuple[list[int], Members]:
        """The answered queries that share records with this one, directly or through others; and all their records."""
        linked: set[int] = set()
        records = chosen
        while True:
            more = [k for k, each in enumerate(self._sets) if k not in linked and np.isin(each, records).any()]
            if not more:
                return sorted(linked), records
            linked.update(more)
            records = np.unique(np.concatenate([records, *(self._sets[k] for k in more)]))


def _solutions(rows: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Which records are 0 in some solution of zeros and ones, and which are 1; None where there is no solution."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = rows.shape[1]
    seen = np.zeros((2, n), bool)
    exactly = LinearConstraint(rows, counts, counts)

    def solve(cost: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        found = milp(cost, integrality=np.ones(n), bounds=Bounds(0, 1), constraints=exactly)
        return None if found.x is None else found.x > 0.5

    first = solve(np.zeros(n))
    if first is None:
        return None
    seen[0], seen[1] = ~first, first
    for record in range(n):
        for value in (0, 1):
            if not seen[value, record]:
                cost = np.zeros(n)
                cost[record] = 1.0 if value == 0 else -1.0
                found = solve(cost)
                assert found is not None  # as there is one solution
                seen[0] |= ~found
                seen[1] |= found
    return seen


class OverlapControl:
    """Answers few enough queries, of sets that share few enough records, that no value can follow.

    With sets of at least k records, any two of which share at most r, at least (2k − (l + 1)) / r sums are needed to
    determine a value, if l values are known beforehand. Two values of one person at different times count as shared:
    one may reveal the other, as those of a 0/1 attribute do.

    Args:
        n: How many records there are.
        least: k.
        overlap: r.
        known: l.
        of: Whose they are, see `owners`.

    Raises:
        ConfigurationError: No query could be answered.
    """

    def __init__(self, n: int, least: int, overlap: int, known: int = 0, of: ArrayLike | None = None) -> None:
        self.n, self._least, self._overlap, self._of = n, least, overlap, owners(of, n)
        self.needed = inf if overlap == 0 else (2 * least - (known + 1)) / overlap
        if self.needed <= 1 or overlap < 0:
            raise ConfigurationError(
                f"sets of {least} records that may share {overlap}, with {known} values known, protect no value; "
                "ask for larger sets or less overlap"
            )
        self._sets: list[Members] = []

    @property
    def most(self) -> float:
        """How many queries are answered at most: one fewer than an attack needs."""
        return inf if self.needed == inf else floor(self.needed) - (1 if self.needed == floor(self.needed) else 0)

    def decide(self, query: ArrayLike) -> Decision:
        """Whether a sum or count over some records may be answered; the query as for `SumAuditor.decide`."""
        chosen = members(query, self.n)
        if any(np.array_equal(chosen, each) for each in self._sets):
            return ANSWERED
        if len(chosen) < self._least:
            return Decision("size")
        if any(int(np.isin(self._of[chosen], self._of[each]).sum()) > self._overlap for each in self._sets):
            return Decision("overlap")
        return Decision("too many") if len(self._sets) >= self.most else ANSWERED

    def answer(self, query: ArrayLike) -> None:
        """Takes in a query that is answered. It must have been allowed."""
        chosen = members(query, self.n)
        if not any(np.array_equal(chosen, each) for each in self._sets):
            self._sets.append(chosen)

    def extend(self, more: int, of: ArrayLike | None = None) -> NDArray[np.int64]:
        """Adds records: new ones, or the new values of old ones.

        Args:
            more: How many.
            of: Whose all are then, see `owners`.

        Returns:
            Their numbers.
        """
        self.n += more
        self._of = owners(of, self.n)
        return np.arange(self.n - more, self.n)


class SizeControl:
    """Refuses sets of fewer than k records, and of more than n − k.

    Args:
        n: How many records there are.
        least: k.
    """

    def __init__(self, n: int, least: int) -> None:
        self.n, self._least = n, least

    def decide(self, size: int) -> Decision:
        """Whether a count of a set of so many records may be answered; an empty set is too small."""
        return ANSWERED if self._least <= size <= self.n - self._least else Decision("size")
