"""Select-a-size operators: some of a basket's items are kept, all others come in by chance.

Of a basket t of m items, j is drawn with probability P_j; j items of t, uniformly chosen, are kept and the other m − j
left out; every item outside t is put in with probability ρ. Cut-and-paste is the one of them that keeps j items, j
uniform over 0 … K, and then puts in with ρ all that is not kept, be it in t or not.

Reports have a finite ε if all P_j are positive. With f_j = P_j / C(m, j)·((1 − ρ)/ρ)^j it is ln(max f / min f), since
a report has the probability f_j times what depends on the report alone. `amplified` turns that round: f_j is e^ε from
some j on, and 1 below. That is the "amplification" of Evfimievski, Gehrke and Srikant, which is LDP.

An operator that never keeps more than K items informs of itemsets of K items at most.

Here baskets are cut and padded to m elements as in `ldp.sets.set_oracle`, since the paper's operators reveal how many
items a basket had.

Source: Evfimievski, Srikant, Agrawal and Gehrke, "Privacy Preserving Mining of Association Rules", KDD 2002;
Evfimievski, Gehrke and Srikant, "Limiting Privacy Breaches in Privacy Preserving Data Mining", PODS 2003, on
amplification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Self

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows, bits_at, coin_rows, row_bytes, set_bits
from ldp.arithmetic.subsets import resize
from ldp.budget import check_epsilon, exp_below, log_above
from ldp.domain import DomainLike
from ldp.sets.baskets import Baskets, Sets
from ldp.sets.exact_choice import ExactChoice
from ldp.sets.itemset_reconstruction import BasketOperator
from ldp.sets.mask import binomial
from ldp.sets.set_oracle import complete
from link.errors import ConfigurationError

_SPARE: Final = Fraction(1, 1 << 64)  # of ε, so that `exact_epsilon`, which is rounded up, does not exceed it

_INSERTIONS: Final = tuple(
    Fraction(each, 128) for each in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
)


class SelectASize(BasketOperator):
    """Keeps j of a basket's m elements with probability P_j, and puts in others with ρ.

    Args:
        domain: The items, their number, or their texts.
        sizes: P_0 … P_m, which add up to 1; their number says m.
        insertion: ρ, above 0 and below 1; rounded down to a multiple of 2^-64.

    Attributes:
        length: m; a basket that is larger is cut to a uniform choice of m items.
        rho: The exact ρ.

    Raises:
        ConfigurationError: m, ρ or the probabilities are none that there are.
    """

    def __init__(self, domain: DomainLike, sizes: Sequence[Fraction], insertion: float | Fraction) -> None:
        super().__init__(domain)
        self.length, self.sizes = len(sizes) - 1, tuple(map(Fraction, sizes))
        if not 1 <= self.length <= self.domain.size:
            raise ConfigurationError(f"baskets are cut to 1 to {self.domain.size:,} items, not to {self.length}")
        if min(self.sizes) < 0 or sum(self.sizes) != 1:
            raise ConfigurationError("the probabilities of keeping 0 … m items must not be negative, and add up to 1")
        self.rho = _insertion(insertion).fraction

    @classmethod
    def cut_and_paste(cls, domain: DomainLike, length: int, cutoff: int, insertion: float | Fraction) -> Self:
        """The operator that keeps j items, j uniform over 0 … K but m at most, and puts in all others with ρ.

        Args:
            domain: The items, their number, or their texts.
            length: m.
            cutoff: K, at least 0.
            insertion: ρ.

        Raises:
            ConfigurationError: A parameter is out of range.
        """
        if cutoff < 0 or length < 1:
            raise ConfigurationError("a cut takes baskets of at least one item, and no negative number of them")
        rho, sizes = _insertion(insertion).fraction, [Fraction(0)] * (length + 1)
        for cut in range(cutoff + 1):
            kept = min(cut, length)
            for pasted, probability in enumerate(binomial(length - kept, rho)):
                sizes[kept + pasted] += probability / (cutoff + 1)
        return cls(domain, sizes, rho)

    @classmethod
    def amplified(
        cls, domain: DomainLike, epsilon: float, length: int, insertion: float | Fraction, least: int = 1
    ) -> Self:
        """The operator of a given ε that most often keeps `least` items or more.

        Args:
            domain: The items, their number, or their texts.
            epsilon: ε, of any two baskets.
            length: m.
            insertion: ρ.
            least: How many kept items make a report likelier by e^ε.

        Raises:
            ConfigurationError: A parameter is out of range.
        """
        if not 1 <= least <= length:
            raise ConfigurationError(f"of {length} items 1 to {length} can be kept at least, not {least}")
        rho = _insertion(insertion).fraction
        grown = exp_below(Fraction(check_epsilon(epsilon)) - _SPARE)
        odds = rho / (1 - rho)
        weights = [math.comb(length, j) * odds**j * (grown if j >= least else 1) for j in range(length + 1)]
        return cls(domain, [each / sum(weights) for each in weights], rho)

    @classmethod
    def for_itemsets(cls, domain: DomainLike, epsilon: float, length: int, k: int) -> Self:
        """The amplified operator under which supports of rare itemsets of k items have the least variance.

        Args:
            domain: The items, their number, or their texts.
            epsilon: ε, of any two baskets.
            length: m.
            k: How many items the itemsets have, at most m.

        Raises:
            ConfigurationError: A parameter is out of range.
        """
        if not 1 <= k <= length:
            raise ConfigurationError(f"baskets of {length} items hold itemsets of 1 to {length}, not of {k}")
        nobody = np.eye(k + 1)[0]
        choices = [
            cls.amplified(domain, epsilon, length, rho, least) for rho in _INSERTIONS for least in range(1, length + 1)
        ]
        return min(choices, key=lambda each: each.variance(k, nobody))

    @property
    def exact_epsilon(self) -> float:
        """Of any two baskets; infinite if some number of items is never kept. Tight where d is at least 2m."""
        ratio = (1 - self.rho) / self.rho
        weights = [p / math.comb(self.length, j) * ratio**j for j, p in enumerate(self.sizes)]
        return log_above(max(weights) / min(weights)) if min(weights) else math.inf

    def perturb(self, sets: Sets, rng: Randomness | None = None) -> Rows:
        """Randomised baskets as rows of bits, the dummies' last; otherwise as `BasketOperator.perturb`."""
        rng = Randomness.from_os() if rng is None else rng
        full = complete(Baskets.of(sets, self.domain), self.length, rng)
        n, m = full.shape
        common = math.lcm(*(each.denominator for each in self.sizes))
        kept = np.zeros((n, row_bytes(m)), dtype=np.uint8)
        resize(kept, ExactChoice([int(each * common) for each in self.sizes]).draw(n, rng), m, rng)
        rows = coin_rows(Dyadic.floor(self.rho, PRECISE_BITS), n, self.domain.size + m, rng)
        for j in range(m):
            set_bits(rows, full[:, j], bits_at(kept, np.array([j]))[:, 0])
        return rows

    def transition(self, k: int) -> list[list[Fraction]]:
        """`P[a][j]`: of j' kept items some are among the a, and of the k − a others each comes in with ρ."""
        m = self.length
        table = []
        for a in range(k + 1):
            row, inserted = [Fraction(0)] * (k + 1), binomial(k - a, self.rho)
            for number, probability in enumerate(self.sizes):
                for own in range(min(a, number) + 1):
                    share = (
                        probability * math.comb(a, own) * Fraction(_choices(m - a, number - own), math.comb(m, number))
                    )
                    for others, each in enumerate(inserted):
                        row[own + others] += share * each
            table.append(row)
        return table


def _choices(n: int, k: int) -> int:
    """C(n, k); none where n is negative, as of an itemset that no basket is large enough to hold."""
    return math.comb(n, k) if n >= 0 else 0


def _insertion(rho: float | Fraction) -> Dyadic:
    if not 0 < rho < 1:
        raise ConfigurationError(f"items are put in with a probability above 0 and below 1, not {rho}")
    found = Dyadic.floor(Fraction(rho), PRECISE_BITS)
    if found.numerator == 0:
        raise ConfigurationError("items are put in too rarely; raise the probability of insertion")
    return found
