"""How good a search for the k most frequent was: F1, normalised cumulative rank, and the variance of what was found.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 6.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def f1(found: Collection[Hashable], true: Collection[Hashable]) -> float:
    """The harmonic mean of precision and recall; the share of true ones found where both are k.

    Args:
        found: What was found, each once.
        true: The k most frequent.
    """
    return 2 * len(set(found) & set(true)) / (len(found) + len(true)) if found or true else 1.0


def ncr(found: Collection[Hashable], true: Sequence[Hashable]) -> float:
    """The normalised cumulative rank: the sum of found ones' scores, k for the most frequent down to 1, by its maximum.

    Args:
        found: What was found.
        true: The k most frequent, the most frequent first; at least one.
    """
    k = len(true)
    known = set(found)
    return 2 * sum(k - rank for rank, each in enumerate(true) if each in known) / (k * (k + 1))


def variance_of_found(estimates: Mapping[Key, float], true: Mapping[Key, float]) -> float | None:
    """The mean squared error of the estimated frequencies of what was rightly found; None if nothing was.

    Args:
        estimates: Estimated frequencies of what was found.
        true: Frequencies of the k most frequent.
    """
    errors = [(estimates[each] - frequency) ** 2 for each, frequency in true.items() if each in estimates]
    return sum(errors) / len(errors) if errors else None
