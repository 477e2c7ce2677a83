"""Candidates of the next length: the Apriori prefix join and subset prune (Agrawal & Srikant 1994, section 2.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mining.lattice import SetKeys, Sets, find, prefix_bounds
from mining.limits import EnumerationLimit

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Candidates:
    """Itemsets whose every subset with one item less is frequent.

    Attributes:
        sets: Shape (c, k + 1), lexicographically sorted.
        left: Position, among the frequent k-itemsets, of the candidate without its last item.
        right: Position of the candidate without its last item but one.
    """

    sets: Sets
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sets)

    def select(self, chosen: NDArray[np.bool_] | slice) -> Candidates:
        """The candidates of a mask or a slice."""
        return Candidates(self.sets[chosen], self.left[chosen], self.right[chosen])


def join(frequent: Sets, limit: int | None = None) -> Candidates:
    """Join frequent itemsets that share all but their last item, and prune by subsets.

    Args:
        frequent: All frequent k-itemsets, shape (m, k), lexicographically sorted, items ascending in a row.
        limit: The most candidates allowed.

    Raises:
        EnumerationLimit: There are more candidates than `limit`.
    """
    ends = np.repeat(*_prefix_classes(frequent))
    partners = ends - np.arange(len(frequent)) - 1
    if limit is not None and partners.sum() > limit:  # perhaps too many: they are counted before any is kept
        total = 0
        for left, _ in _pruned(frequent, partners):
            total += len(left)
            if total > limit:
                raise EnumerationLimit(limit)
    found = list(_pruned(frequent, partners))
    left = np.concatenate([left for left, _ in found]) if found else np.empty(0, np.int64)
    right = np.concatenate([right for _, right in found]) if found else np.empty(0, np.int64)
    return Candidates(_joined(frequent, left, right), left, right)


def most_candidates(found: Iterable[Sets], length: int, limit: int) -> int:
    """How many candidates of a length there may be, so that no level and no sum of levels outgrows the job's limit.

    An itemset of many items takes more room than a pair. So the itemsets found so far and the next candidates together
    take no more of it than `limit` pairs: a job without an end, such as one where each subset of a long row is
    frequent, stops before it has filled the machines.

    Args:
        found: The frequent itemsets of each length from 2 on.
        length: Of the candidates.
        limit: The most candidates of one length that the job allows.
    """
    return most_after(((sets.shape[1], len(sets)) for sets in found), length, limit)


def most_after(found: Iterable[tuple[int, int]], length: int, limit: int) -> int:
    """As `most_candidates`, from the lengths of the itemsets found so far and how many of each there are."""
    room = limit * _room(2) - sum(number * _room(each) for each, number in found)
    return max(0, min(limit, room // _room(length)))


def _room(length: int) -> int:
    """Bytes of the items and the count of an itemset."""
    return 4 * length + 8


def _prefix_classes(frequent: Sets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each run of itemsets that share all but the last item ends, and how long it is."""
    bounds = prefix_bounds(frequent, frequent.shape[1] - 1)
    return bounds[1:], np.diff(bounds)


def _pruned(frequent: Sets, partners: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The positions of both parents of all candidates in their order, a chunk at a time.

    Args:
        frequent: Shape (m, k).
        partners: Of each, how many behind it share all but the last item.
    """
    keys = SetKeys(frequent)
    known = keys.of(frequent)
    done = np.cumsum(partners)
    begin = 0
    while begin < len(frequent):
        before = int(done[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(done, before + _CHUNK, side="right")))
        repeats = partners[begin:end]
        left = np.repeat(np.arange(begin, end), repeats)
        shift = np.arange(begin, end) + 1 - (done[begin:end] - repeats - before)
        right = np.repeat(shift, repeats) + np.arange(len(left))
        begin = end
        if frequent.shape[1] > 1 and len(left):
            left, right = _prune(frequent, left, right, keys, known)
        yield left, right


def _joined(frequent: Sets, left: NDArray[np.int64], right: NDArray[np.int64]) -> Sets:
    sets = np.empty((len(left), frequent.shape[1] + 1), np.int32)
    sets[:, :-1] = frequent[left]
    sets[:, -1] = frequent[right, -1]
    return sets


def _prune(
    frequent: Sets,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    keys: SetKeys,
    known: NDArray[np.generic],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep the joined pairs whose every subset is frequent; the two joined parents are known to be."""
    alive = np.ones(len(left), bool)
    sets = _joined(frequent, left, right)
    for d, subset in enumerate(keys.of_subsets(sets)):
        if d >= frequent.shape[1] - 1:
            break
        alive &= find(known, subset) >= 0
    return left[alive], right[alive]
