"""Maxima and minima of real values: a query is denied if any answer that it could have would determine a value.

Let μ_j be the least answer of a query with record j. Then x_j ≤ μ_j, and query k is answered by one of its extreme
records E_k = {j ∈ Q_k: μ_j = m_k}. Answers are consistent if no E_k is empty; they determine x_j if some E_k is {j}.

Whether the next query is answered must not depend on its answer, or the denial itself would reveal something. So every
answer is tried that is consistent with the earlier ones: it is enough to try each earlier answer, one value between any
two, and one beyond either end, 2t + 1 in all.

A person's value may change, and then two records are known to be different. If both are bounded by the same μ, not both
are extreme: max{0, 1} = 9, max{0', 1'} = 9 and max{0'', 1'', 2} = 9 after changes would reveal x_2 = 9. So such records
are not counted in E_k, which may deny more than an exact test would, and never less: all of them may lie below μ.

Source: Kenthapadi, Mishra and Nissim, "Simulatable auditing", PODS 2005 (JCSS 79, 2013), section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.auditing.decision import ANSWERED, Decision, Members, members, owners


class MaxAuditor:
    """Decides on maxima over sets of records, whose values may be equal.

    Minima are maxima of the negated values; a column has either.

    Args:
        n: How many records there are.
        of: Whose they are, see `owners`.
    """

    def __init__(self, n: int, of: ArrayLike | None = None) -> None:
        self._sets: list[Members] = []
        self._answers = np.empty(0)
        self._least = np.full(n, np.inf)
        self._of, self._versions = _versions(of, n)

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self._least)

    def decide(self, query: ArrayLike) -> Decision:
        """Whether the maximum over some records may be answered; the query as for `SumAuditor.decide`."""
        chosen = members(query, self.n)
        inside = np.zeros(self.n, bool)
        inside[chosen] = True
        sizes, shared = self._extreme_records(inside)
        bounds = np.sort(self._least[chosen])
        versions = self._versions
        held = np.array([np.isin(versions, each) for each in self._sets], bool).reshape(len(self._sets), len(versions))
        for answer in self._possible():
            # Records of the query with a higher bound leave the extreme records of the queries that set it.
            left = np.where(self._answers > answer, sizes - shared, sizes)
            own = len(bounds) - int(np.searchsorted(bounds, answer, side="left"))
            if own == 0 or (left == 0).any():
                continue  # no data give this answer
            if len(versions):
                least = np.where(inside[versions], np.minimum(self._least[versions], answer), self._least[versions])
                tied = _tied(self._of[versions], least)
                left = left - (held & tied & (least == self._answers[:, None])).sum(axis=1)
                own -= int(np.count_nonzero(inside[versions] & tied & (least == answer)))
            if own <= 1 or (left <= 1).any():
                return Decision("disclosure")
        return ANSWERED

    def answer(self, query: ArrayLike, maximum: float) -> None:
        """Takes in a maximum that is answered. It must have been allowed."""
        chosen = members(query, self.n)
        self._sets.append(chosen)
        self._answers = np.append(self._answers, maximum)
        self._least[chosen] = np.minimum(self._least[chosen], maximum)

    def extend(self, more: int, of: ArrayLike | None = None) -> NDArray[np.int64]:
        """Adds records: new ones, or the new values of old ones.

        Args:
            more: How many.
            of: Whose all are then, see `owners`.

        Returns:
            Their numbers.
        """
        first = self.n
        self._least = np.concatenate([self._least, np.full(more, np.inf)])
        self._of, self._versions = _versions(of, self.n)
        return np.arange(first, self.n)

    def determined(self) -> NDArray[np.int64]:
        """The records whose values the answers so far determine: none, if every query was allowed."""
        found = []
        for chosen, answer in zip(self._sets, self._answers.tolist(), strict=True):
            extreme = chosen[self._least[chosen] == answer]
            if len(extreme) == 1:
                found.append(int(extreme[0]))
        return np.unique(np.array(found, np.int64))

    def _extreme_records(self, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """|E_k| of each query, and how many of E_k are in the new query."""
        sizes, shared = np.zeros((2, len(self._sets)), np.int64)
        for k, chosen in enumerate(self._sets):
            extreme = chosen[self._least[chosen] == self._answers[k]]
            sizes[k], shared[k] = len(extreme), np.count_nonzero(inside[extreme])
        return sizes, shared

    def _possible(self) -> NDArray[np.float64]:
        """The answers to try, descending; each earlier one, and one on either side of each."""
        known = np.unique(self._answers)
        if not len(known):
            return np.zeros(1)
        between = known[:-1] + (known[1:] - known[:-1]) / 2
        distinct = between[(between > known[:-1]) & (between < known[1:])]
        beyond = [np.nextafter(known[0], -np.inf), np.nextafter(known[-1], np.inf)]
        return np.concatenate([known, distinct, beyond])[::-1]


def _versions(of: ArrayLike | None, n: int) -> tuple[Members, Members]:
    """Whose the records are, and the records of those that have several."""
    persons = owners(of, n)
    _, which, times = np.unique(persons, return_inverse=True, return_counts=True)
    return persons, np.flatnonzero(times[which] > 1)


def _tied(of: Members, least: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which records have the bound of another one of the same person, shape (n,)."""
    _, which, times = np.unique(np.stack([of, least]), axis=1, return_inverse=True, return_counts=True)
    return (times[which.ravel()] > 1) & np.isfinite(least)
