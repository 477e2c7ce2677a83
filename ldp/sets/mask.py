"""MASK: every item's bit of a basket is kept with probability p and flipped with 1 − p. A baseline, not useful LDP.

Two baskets that differ in one item are protected with ln(p/(1 − p)). But baskets differ in many: two disjoint ones of
ten items with 20·ln(p/(1 − p)), which is 43.9 for p = 0.9. What the guarantee really is, `exact_epsilon` and
`epsilon_between` say. Unary encoding of one value (`ldp.oracles.unary_encoding`) is the same operator with two
differing bits at most.

Source: Rizvi and Haritsa, "Maintaining Data Privacy in Association Rule Mining", VLDB 2002.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows, coin_rows, row_bytes
from ldp.budget import log_above
from ldp.domain import DomainLike
from ldp.sets.baskets import Baskets, Sets
from ldp.sets.itemset_reconstruction import BasketOperator
from link.errors import ConfigurationError


class Mask(BasketOperator):
    """Keeps each bit with probability p.

    Args:
        domain: The items, their number, or their texts.
        keep: p, above one half and below 1; rounded to a multiple of 2^-64, towards one half.

    Attributes:
        p: The exact probability.

    Raises:
        ConfigurationError: p is out of range.
    """

    def __init__(self, domain: DomainLike, keep: float | Fraction) -> None:
        super().__init__(domain)
        if not Fraction(1, 2) < keep < 1:
            raise ConfigurationError(f"bits are kept with a probability above one half and below 1, not {keep}")
        self.keep = keep
        self._kept = Dyadic.floor(Fraction(keep), PRECISE_BITS)
        self.p = self._kept.fraction
        if self.p <= Fraction(1, 2):
            raise ConfigurationError("bits that are kept with a probability so near one half reveal nothing; raise it")

    @property
    def bit_epsilon(self) -> float:
        """ln(p/(1 − p)): of two baskets that differ in one item."""
        return log_above(self.p / (1 - self.p))

    @property
    def exact_epsilon(self) -> float:
        """Of the two baskets that differ most, the empty one and the one with all items: d times `bit_epsilon`."""
        return self.domain.size * self.bit_epsilon

    def epsilon_between(self, first: Collection[str | int], second: Collection[str | int]) -> float:
        """The ε that protects two baskets from each other: `bit_epsilon` for each item that only one of them holds.

        Args:
            first: A user's items.
            second: Another user's items.

        Raises:
            InputDataError: An item is not in the domain.
        """
        pair = Baskets.of([first, second], self.domain)
        one, other = (set(pair.codes[pair.offsets[i] : pair.offsets[i + 1]].tolist()) for i in (0, 1))
        return len(one ^ other) * self.bit_epsilon

    def perturb(self, sets: Sets, rng: Randomness | None = None) -> Rows:
        """Randomised baskets as rows of bits; arguments and errors as for `BasketOperator.perturb`."""
        baskets, rng = Baskets.of(sets, self.domain), Randomness.from_os() if rng is None else rng
        rows = np.zeros((len(baskets), row_bytes(self.domain.size)), dtype=np.uint8)
        np.bitwise_or.at(rows, (baskets.owners, baskets.codes >> 3), (1 << (baskets.codes & 7)).astype(np.uint8))
        return rows ^ coin_rows(self._kept.complement, len(baskets), self.domain.size, rng)

    def transition(self, k: int) -> list[list[Fraction]]:
        """`P[a][j]`: how many of a bits stay 1, and how many of k − a become it."""
        return [_convolved(binomial(a, self.p), binomial(k - a, 1 - self.p)) for a in range(k + 1)]


def binomial(n: int, p: Fraction) -> list[Fraction]:
    """The probabilities of 0 … n successes."""
    probabilities = [Fraction(1)]
    for _ in range(n):
        probabilities = _convolved(probabilities, [1 - p, p])
    return probabilities


def _convolved(one: list[Fraction], other: list[Fraction]) -> list[Fraction]:
    """Of the sum of two independent numbers."""
    found = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, p in enumerate(one):
        for j, q in enumerate(other):
            found[i + j] += p * q
    return found
