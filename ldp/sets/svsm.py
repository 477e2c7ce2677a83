"""SVSM, set-value itemset mining: the k most frequent items and itemsets, in five phases with different users.

    1–3  SVIM finds the k most frequent items
    4    a fifth of the other users reports how many candidate itemsets its sets contain: a length L as in SVIM
    5    the rest report one candidate itemset that their sets contain (padding and sampling, l = L)

Candidates are the 2·k itemsets with the highest guessed frequencies, see `ldp.sets.itemset_candidates`. The k best of
items and candidates together are what was found. Every user answers in one phase, with all of ε.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.sets.itemset_candidates import Candidates, best_itemsets, largest_itemset
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningPlan, Phase, Supports
from ldp.sets.size_histogram import SetSizes
from ldp.sets.svim import SHARES, ItemMining, completed, padded, sizes_of
from link.errors import ConfigurationError

SIZES_SHARE: Final = Fraction(1, 5)
"""Of the users who are not asked about items."""

_MOST_SOUGHT: Final = 10_000
_OF_ITEMS: Final = len(SHARES)


class ItemsetMining(MiningPlan):
    """SVSM: the public plan of a search for the k most frequent items and itemsets.

    Args:
        domain: The items: a domain, its size, or their texts; at least three.
        epsilon: The privacy budget ε of a user, who reports once.
        k: How many itemsets, single items among them, are sought; at least 3.
        item_share: The share of users who are asked about single items.
        treatment: How the estimated sizes are taken, one of `ldp.sets.size_histogram.TREATMENTS`.
        largest: The most items of an itemset that is sought, at least 2; without it as many as one of the k most
            frequent can have.
        by_phase: As of `MiningPlan`.

    Attributes:
        items: The plan of the first three phases.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        k: int,
        item_share: Fraction | float = Fraction(7, 10),
        treatment: str = "shrunken",
        largest: int | None = None,
        by_phase: Sequence[float] = (),
    ) -> None:
        super().__init__(domain, epsilon, k, by_phase)
        if self.domain.size < 3:
            raise ConfigurationError(
                "two items have one itemset beside themselves; itemsets are mined among three or more"
            )
        share = Fraction(item_share).limit_denominator(1000)
        if not 0 < share < 1:
            raise ConfigurationError(f"a share of users lies between 0 and 1, not at {item_share}")
        if largest is not None and largest < 2:
            raise ConfigurationError(f"itemsets have two items or more, not {largest}; single items are found by SVIM")
        self.item_share, self.treatment = share, treatment
        self.largest = min(largest_itemset(k), k if largest is None else largest)
        self.items = ItemMining(self.domain, epsilon, min(k, self.domain.size), treatment, by_phase[:_OF_ITEMS])
        rest = 1 - share
        self.shares = (*(share * each for each in self.items.shares), rest * SIZES_SHARE, rest * (1 - SIZES_SHARE))

    @property
    def least_sought(self) -> int:
        """3: no pair is among the two most frequent itemsets for certain, as both its items are as frequent."""
        return 3

    @property
    def most_sought(self) -> int:
        """Enough for any use; a client looks for each of the 2·k candidates in its set."""
        return _MOST_SOUGHT

    def phase(self, estimates: Sequence[Estimate]) -> Phase:
        """Three phases on items, then sizes, then the itemsets' frequencies; arguments as of `MiningPlan.phase`."""
        number, of_items = len(estimates), _OF_ITEMS
        mechanism: PaddingAndSampling | SetSizes
        if number < of_items:
            return Phase(number, self.shares[number], self.items.phase(estimates).mechanism)
        candidates = self._candidates(self.items.supports(estimates[:of_items]))
        if number == of_items:
            mechanism = sizes_of(self.domain, self.epsilon_of(number), candidates)
        else:
            users = estimates[of_items].n * float(self.shares[-1] / self.shares[-2])
            mechanism = padded(self.domain, self.epsilon_of(number), candidates, estimates[of_items], users)
        return Phase(number, self.shares[number], mechanism)

    def supports(self, estimates: Sequence[Estimate]) -> Supports:
        """The k best of items and candidates; arguments as of `MiningPlan.supports`."""
        mechanism = self.phase(estimates[:-1]).mechanism
        assert isinstance(mechanism, PaddingAndSampling)
        items = self.items.supports(estimates[:_OF_ITEMS])
        itemsets = completed(mechanism, estimates[-2], estimates[-1], self.treatment)
        first = len(items.itemsets)
        compared = min(2 * self.items.k, self.domain.size) + len(itemsets.itemsets)
        covariances = np.zeros((first + len(itemsets.itemsets),) * 2)  # different users reported: none between the two
        covariances[:first, :first], covariances[first:, first:] = items.covariances, itemsets.covariances
        return Supports(
            self.domain,
            (*items.itemsets, *itemsets.itemsets),
            np.concatenate([items.frequencies, itemsets.frequencies]),
            covariances,
        ).top(self.k, among=compared)

    def _candidates(self, items: Supports) -> Candidates:
        # An item without a positive estimate counts as rare as the rarest that has one: so there always are candidates.
        least = min((each for each in items.frequencies.tolist() if each > 0), default=1.0)
        frequencies = {
            item: max(frequency, least) for (item,), frequency in zip(items.itemsets, items.frequencies, strict=True)
        }
        return best_itemsets(frequencies, 2 * self.k, self.largest)
