"""Supports of itemsets from randomised baskets, level by level.

An operator changes baskets item by item, so that of a basket that holds a of an itemset's k items a report shows j with
a probability P[a][j] that depends on nothing else. With the weights w that solve Σ_j P[a][j]·w_j = 1 if a = k, else 0,

    ŝ = Σ_j w_j·N_j,        N_j the number of reports that show j of the items

is the itemset's support, without bias. A report's square w_j² has the mean Var + (1 if a = k), so that Σ_j w_j²·N_j − ŝ
is its variance, without bias too, whatever the baskets are.

Source: Evfimievski, Srikant, Agrawal and Gehrke, "Privacy Preserving Mining of Association Rules", KDD 2002, on partial
supports and mining by levels; Rizvi and Haritsa, VLDB 2002, on MASK's weights. The variance is derived here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.packed import Rows, bits_at
from ldp.arithmetic.sampling import Bits
from ldp.bias_aware import selection_factor
from ldp.domain import Domain, DomainLike
from ldp.frequency_oracle import Floats
from ldp.sets.baskets import Sets
from ldp.sets.itemset_candidates import Itemset
from link.errors import ConfigurationError, InputDataError

_LONGEST: Final = 12  # weights of larger itemsets are so large that nothing is left of a support


@dataclass(frozen=True, slots=True)
class ItemsetSupport:
    """An itemset's estimated support.

    Attributes:
        items: Numbers of the items, ascending.
        support: The unbiased estimate of how many baskets hold all of them.
        deviation: Its standard deviation, estimated from the same reports; see `BasketOperator.frequent`.
        n: How many baskets.
    """

    items: Itemset
    support: float
    deviation: float
    n: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A normal confidence interval of the support, cut to 0 … n.

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ConfigurationError(f"a confidence lies between 0 and 1, not at {confidence}")
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * self.deviation
        return max(0.0, self.support - reach), min(float(self.n), self.support + reach)


class BasketOperator(ABC):
    """An operator that randomises baskets, and mining in what it gives.

    Args:
        domain: The items, their number, or their texts.
    """

    def __init__(self, domain: DomainLike) -> None:
        self.domain = Domain.of(domain)
        self._weights: dict[int, Floats] = {}
        self._spreads: dict[int, Floats] = {}

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The ε of LDP: of any two baskets, whatever they hold."""

    @abstractmethod
    def perturb(self, sets: Sets, rng: Randomness | None = None) -> Rows:
        """Randomised baskets as rows of bits, the first item's lowest.

        Args:
            sets: The users' baskets.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Raises:
            InputDataError: An item is not in the domain.
        """

    @abstractmethod
    def transition(self, k: int) -> list[list[Fraction]]:
        """`P[a][j]`: the exact probability that of k given items, of which a basket holds a, the report shows j."""

    def weights(self, k: int) -> Floats:
        """W_0 … w_k of itemsets of k items, to the nearest floats.

        Raises:
            ConfigurationError: k is not between 1 and 12, or reports say nothing of such itemsets.
        """
        if not 1 <= k <= _LONGEST:
            raise ConfigurationError(f"supports are reconstructed for itemsets of 1 to {_LONGEST} items, not of {k}")
        if k not in self._weights:
            self._weights[k] = np.array([float(each) for each in _solved(self.transition(k))])
        return self._weights[k]

    def variance(self, k: int, partial: Floats) -> float:
        """The exact variance of an estimated support, over the operator's randomness.

        Args:
            k: How many items the itemset has.
            partial: Shape (k + 1,): how many baskets hold 0 … k of them.
        """
        return float(np.dot(partial, self._variances(k)))

    def _variances(self, k: int) -> Floats:
        """Of what a basket that holds 0 … k of the items adds to a support."""
        if k not in self._spreads:
            squares = np.array(self.transition(k), dtype=np.float64) @ self.weights(k) ** 2
            squares[k] -= 1
            self._spreads[k] = squares
        return self._spreads[k]

    def supports(self, rows: Rows, itemsets: Iterable[Sequence[int]]) -> list[ItemsetSupport]:
        """The estimated supports of given itemsets.

        Args:
            rows: n randomised baskets.
            itemsets: Numbers of items.

        Raises:
            InputDataError: There is no basket, or an item is not in the domain or twice in an itemset.
        """
        wanted = [tuple(sorted(map(int, each))) for each in itemsets]
        for each in wanted:
            if len(set(each)) < len(each) or not each or not 0 <= each[0] <= each[-1] < self.domain.size:
                raise InputDataError(f"{each} is no set of different items of the numbers 0 to {self.domain.size - 1}")
        columns = _Columns(rows)
        return [self._support(columns, each) for each in wanted]

    def _support(self, columns: _Columns, items: Itemset) -> ItemsetSupport:
        weights, shown = self.weights(len(items)), columns.partial(items)
        support = float(weights @ shown)
        # No basket has less than the least variance: few reports may by chance look as if they had.
        variance = max(float(weights**2 @ shown) - support, columns.n * float(self._variances(len(items)).min()), 0.0)
        return ItemsetSupport(items, support, math.sqrt(variance), columns.n)

    def frequent(self, rows: Rows, least: float, *, longest: int = 4, slack: float = 1.0) -> list[ItemsetSupport]:
        """The itemsets whose estimated support reaches a threshold, found level by level.

        An itemset is looked at if all its subsets with one item less could be frequent: if their estimates do not fall
        short of the threshold by more than `slack` standard deviations.

        Args:
            rows: n randomised baskets.
            least: The support that a frequent itemset has, as a share of the baskets.
            longest: The most items of an itemset.
            slack: By how many standard deviations the threshold is lowered for subsets.

        Returns:
            By size, then in ascending order. Deviations are raised for what was selected because its estimate is high,
            by how many of those that were looked at are selected, see `ldp.bias_aware`.

        Raises:
            ConfigurationError: The threshold or `longest` is out of range, or `slack` is negative.
            InputDataError: There is no basket.
        """
        if not 0 < least <= 1 or slack < 0 or not 1 <= longest <= _LONGEST:
            raise ConfigurationError(
                f"mining takes a share between 0 and 1, itemsets of 1 to {_LONGEST} items, and no negative slack"
            )
        found, compared = list[ItemsetSupport](), 0
        columns = _Columns(rows)
        candidates: list[Itemset] = [(item,) for item in range(self.domain.size)]
        for _ in range(longest):
            level = [self._support(columns, each) for each in candidates]
            found += [each for each in level if each.support >= least * each.n]
            grown = [each.items for each in level if each.support + slack * each.deviation >= least * each.n]
            compared += len(candidates)
            candidates = joined(grown)
        factor = selection_factor(len(found), compared)
        return [replace(each, deviation=factor * each.deviation) for each in found]


class _Columns:
    """The reports' bits by item, taken out of the rows when they are first asked for."""

    def __init__(self, rows: Rows) -> None:
        if not len(rows):
            raise InputDataError("there is no basket to estimate from; perturb and collect some first")
        self.n, self._rows = len(rows), rows
        self._taken: dict[int, Bits] = {}

    def partial(self, items: Itemset) -> NDArray[np.int64]:
        """How many reports show 0 … k of the items; shape (k + 1,)."""
        shown = np.zeros(self.n, dtype=np.uint8)
        for item in items:
            if item not in self._taken:
                self._taken[item] = bits_at(self._rows, np.array([item]))[:, 0]
            shown += self._taken[item]
        return np.bincount(shown, minlength=len(items) + 1)


def joined(itemsets: Sequence[Itemset]) -> list[Itemset]:
    """The itemsets with one item more of which all subsets with one item less are given (Apriori).

    Args:
        itemsets: Of one size, ascending, in ascending order.
    """
    known, found = set(itemsets), []
    for place, first in enumerate(itemsets):
        for second in itemsets[place + 1 :]:
            if first[:-1] != second[:-1]:
                break
            candidate = (*first, second[-1])
            if all(each in known for each in combinations(candidate, len(first))):
                found.append(candidate)
    return found


def _solved(transition: list[list[Fraction]]) -> list[Fraction]:
    """The solution w of P·w = (0, …, 0, 1), exact.

    Raises:
        ConfigurationError: There is none: reports do not show how many of so many items a basket holds.
    """
    size = len(transition)
    rows = [[*row, Fraction(int(a == size - 1))] for a, row in enumerate(transition)]
    for place in range(size):
        pivot = next((row for row in range(place, size) if rows[row][place]), None)
        if pivot is None:
            raise ConfigurationError(
                f"the operator's reports say nothing of itemsets of {size - 1} items; ask for less"
            )
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [each / rows[place][place] for each in rows[place]]
        for other in range(size):
            if other != place and rows[other][place]:
                factor = rows[other][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place], strict=True)]
    return [row[-1] for row in rows]
