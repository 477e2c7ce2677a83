"""Candidates for frequent itemsets, and which of them users' sets contain.

Before itemsets are looked at, only single items' frequencies are known. SVSM guesses an itemset's frequency as if its
items were independent: g(X) is the product over X of 0.9·θ(x)/max θ. With rising size g falls, so that a best-first
search meets the itemsets in falling order of g and looks at few others.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 5. That a
frequent itemset's size is bounded is in the survey of Wang and Yang: all 2^|X| − 1 non-empty subsets of X are at least
as frequent as X, so that X can be among the k most frequent only if 2^|X| − 1 ≤ k.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldp.domain import Domain
from ldp.sets.baskets import Baskets
from link.errors import ConfigurationError

Itemset: TypeAlias = tuple[int, ...]
"""Numbers of items, ascending."""

Candidates: TypeAlias = tuple[Itemset, ...]
"""Different itemsets in ascending order, as Python orders tuples."""

_GUESSED: Final = 0.9  # of the most frequent item: below 1, so that g falls with every item that is added
_USERS: Final = 1 << 16  # whose sets are looked at at once, so that memory stays bounded


def largest_itemset(k: int) -> int:
    """How many items an itemset among the k most frequent can have: ⌊log₂(k + 1)⌋."""
    return (k + 1).bit_length() - 1


def best_itemsets(frequencies: dict[int, float], most: int, largest: int) -> Candidates:
    """The itemsets of two items and more with the highest guessed frequencies.

    Args:
        frequencies: Estimates of single items' frequencies; items without a positive one are left out.
        most: How many itemsets are wanted.
        largest: The most items of one.

    Returns:
        At most `most` itemsets; of equal guesses those whose items are more frequent.
    """
    ranked = sorted((item for item, each in frequencies.items() if each > 0), key=lambda it: (-frequencies[it], it))
    if not ranked:
        return ()
    guesses = [_GUESSED * frequencies[item] / frequencies[ranked[0]] for item in ranked]
    found: list[Itemset] = []
    # Ranks of a set's items, ascending. Every set is reached once: from the one without its last rank if that is next
    # to the one before it, and else from the one with a last rank less by one; both have guesses as high at least.
    waiting: list[tuple[float, Itemset]] = [(-guesses[0], (0,))]
    while waiting and len(found) < most:
        _, ranks = heapq.heappop(waiting)
        if len(ranks) > 1:
            found.append(tuple(sorted(ranked[rank] for rank in ranks)))
        following = ranks[-1] + 1
        grown = [(*ranks, following)] if len(ranks) < largest else []
        for each in [*grown, (*ranks[:-1], following)] if following < len(ranked) else []:
            heapq.heappush(waiting, (-math.prod(guesses[rank] for rank in each), each))
    return tuple(sorted(found))


def check_candidates(candidates: Candidates, domain: Domain) -> Candidates:
    """The candidates, if they are two different itemsets of the domain or more, in order.

    Raises:
        ConfigurationError: They are not.
    """
    given = tuple(candidates)
    if not all(isinstance(each, tuple) and all(isinstance(item, int) for item in each) for each in given):
        raise ConfigurationError("candidates must be tuples of items' numbers")
    if len(given) < 2 or any(low >= high for low, high in pairwise(given)):
        raise ConfigurationError("candidates must be at least two different itemsets in ascending order")
    for each in given:
        if not each or any(low >= high for low, high in pairwise(each)) or not 0 <= each[0] <= each[-1] < domain.size:
            raise ConfigurationError(
                f"the candidate {each} is no set of the items 0 to {domain.size - 1} in ascending order"
            )
    return given


def contained(baskets: Baskets, candidates: Sequence[Itemset]) -> Baskets:
    """Which of the candidates each user's set contains, as sets of candidates' numbers.

    Args:
        baskets: The users' sets.
        candidates: Different itemsets in ascending order.

    Returns:
        As many sets, of the numbers 0 … len(candidates) − 1.
    """
    items = sorted({item for each in candidates for item in each})
    known = _within(baskets, items)
    if all(len(each) == 1 for each in candidates):
        return known
    place = {item: number for number, item in enumerate(items)}
    places = [[place[item] for item in each] for each in candidates]
    parts = [_contained(known[start : start + _USERS], places) for start in range(0, len(known), _USERS)]
    owners = np.concatenate([np.zeros(0, np.int64), *(part[0] + _USERS * at for at, part in enumerate(parts))])
    codes = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in parts)])
    return Baskets(_offsets(np.bincount(owners, minlength=len(baskets))), codes, len(candidates))


def _within(baskets: Baskets, items: list[int]) -> Baskets:
    """What each set has of some items, ascending, which are numbered anew."""
    numbers = np.full(baskets.size, -1, dtype=np.int64)
    numbers[items] = np.arange(len(items))
    numbered = numbers[baskets.codes]
    held = numbered >= 0
    return Baskets(_offsets(held)[baskets.offsets], numbered[held], len(items))


def _contained(known: Baskets, candidates: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users and the candidates that they contain, by user."""
    holds = np.zeros((known.size, len(known)), dtype=np.bool_)
    holds[known.codes, known.owners] = True
    contains = np.stack([np.logical_and.reduce(holds[each]) for each in candidates], axis=1)
    owners, codes = np.nonzero(contains)
    return owners, codes


def _offsets(sizes: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where each of consecutive parts starts, and the end."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
