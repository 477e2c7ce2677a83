"""What mechanisms that perturb a whole set at once have in common: padding in order, estimates of items and of sizes.

A set of a ≤ m items is filled up with the dummies D_1 … D_(m − a), in this order, so that D_j is there exactly if the
set has at most m − j items. Estimates of how many sets hold each dummy so show how large sets are, at no further
cost in privacy. A set of more than m items is cut to a uniform choice of m.

Source: Wang, Huang, Nie et al., "PrivSet: Set-Valued Data Analyses with Locale Differential Privacy", INFOCOM 2018.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats
from ldp.mechanism import Mechanism, Tally, some
from ldp.reports import Reports
from ldp.sets.baskets import Baskets, Sets
from link.errors import ConfigurationError

CRITERIA: Final = ("variance", "published")

_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class SetEstimate(Estimate):
    """Estimated counts of items, as `Estimate` says, and the estimated sizes of sets.

    Attributes:
        sizes: Shape (m + 1,): estimated shares of users whose sets have 0 … m items, raw; m means m or more.
        size_variances: Shape (m + 1,): of `sizes`, exact but for estimates, cut to what they can be, in the place of
            the true shares.
    """

    sizes: Floats
    size_variances: Floats


class SetOracle(Mechanism[SetEstimate]):
    """A mechanism for a set a user, of m items at most, out of a known domain.

    A report supports each of the set's items and dummies with probability p and all others with q. Counts are
    without bias if no set has more than m items; a larger one counts m/|s| for each of its items.

    Args:
        domain: The items, their number, or their texts.
        epsilon: The privacy budget ε: of any two sets, whatever they hold.
        length: m; a set that is larger is cut.
        criterion: What a parameter of the report is chosen by: "variance" for the least total variance, of m items that
            are held and d that are not; "published" for the paper's rule.

    Raises:
        ConfigurationError: m or the criterion is none that there is.
    """

    p: Fraction
    q: Fraction
    candidates: ClassVar[None] = None  # all single items are asked about

    def __init__(self, domain: DomainLike, epsilon: float, length: int, criterion: str = "variance") -> None:
        super().__init__(epsilon)
        self.domain = Domain.of(domain)
        if not 1 <= length <= min(_LONGEST, self.domain.size):
            raise ConfigurationError(
                f"sets are cut to between 1 and {min(_LONGEST, self.domain.size):,} of these items, not to {length}"
            )
        if criterion not in CRITERIA:
            raise ConfigurationError(f"there is no criterion '{criterion}'; take one of {', '.join(CRITERIA)}")
        self.length, self.criterion = length, criterion

    @property
    def width(self) -> int:
        """How many items are asked about."""
        return self.domain.size

    @property
    def elements(self) -> int:
        """Number of items and dummies, d + m."""
        return self.domain.size + self.length

    @abstractmethod
    def both(self, held: int) -> Fraction:
        """The probability that a report supports two given elements, if `held` (0, 1 or 2) of them are in the set."""

    def privatise(self, values: ArrayLike | Sets, rng: Randomness | None = None) -> Reports:
        """Perturbs each user's set.

        Args:
            values: The users' sets.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Raises:
            InputDataError: An item is not in the domain.
        """
        return super().privatise(cast("ArrayLike", values), rng)  # sets are ragged, which no array is

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count an item, and one a dummy."""
        return (self.elements,)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(C_v − n·q)/(p − q) for every item and dummy; shape (d + m,)."""
        supports: Floats = tally.astype(np.float64)
        return (supports - n * float(self.q)) / float(self.p - self.q)

    def estimate(self, tally: Tally, n: int) -> SetEstimate:
        """How many sets hold each item, and how many items sets have."""
        some(n)
        d = self.domain.size
        counts = self.unbiased(tally, n)
        items, small = counts[:d], np.concatenate([[n], counts[d:], [0.0]])  # of sets with at most m − j items
        sizes = (small[:-1] - small[1:])[::-1] / n
        likely = np.clip(sizes, 0, 1)
        likely = likely / likely.sum() if likely.any() else np.full(self.length + 1, 1 / (self.length + 1))
        variances = self.variance(np.clip(items, 0, n), n)
        return SetEstimate(self.domain, n, items, variances, sizes, self.size_variances(likely, n))

    def variance(self, counts: Floats, n: int) -> Floats:
        """The exact variances of counts over the reports' randomness, if `counts` are the true ones.

        (c·p(1 − p) + (n − c)·q(1 − q))/(p − q)². Where sets are cut, the choice of what is kept adds less than a
        quarter per user with a set that is cut.

        Args:
            counts: Shape (d,): how many sets hold each item.
            n: How many users.

        Returns:
            Shape (d,).
        """
        held, other = per_user(self.p, self.q)
        counts = np.asarray(counts, dtype=np.float64)
        return counts * float(held) + (n - counts) * float(other)

    def size_variances(self, shares: Floats, n: int) -> Floats:
        """The exact variances of `sizes`, if `shares` are the true ones.

        The share of size m − j is the difference of two dummies' counts, which one report holds together.

        Args:
            shares: Shape (m + 1,).
            n: How many users.

        Returns:
            Shape (m + 1,).
        """
        p, q, scale = self.p, self.q, (self.p - self.q) ** 2
        held, other = per_user(self.p, self.q)
        below = np.cumsum(shares) - shares  # share of smaller sets, which hold both dummies
        neither, one, two = (
            float(each / scale)
            for each in (2 * q - 2 * self.both(0), p + q - 2 * self.both(1) - (p - q) ** 2, 2 * p - 2 * self.both(2))
        )
        variances = below * two + shares * one + (1 - below - shares) * neither
        variances[-1] = shares[-1] * float(other) + (1 - shares[-1]) * float(
            held
        )  # D_1 alone: all smaller sets hold it
        variances[0] = shares[0] * float(held) + (1 - shares[0]) * float(other)  # D_m alone
        return np.asarray(variances / n, dtype=np.float64)


def complete(baskets: Baskets, length: int, rng: Randomness) -> NDArray[np.int64]:
    """Each set with exactly m elements: its items, or a uniform choice of m, and dummies d, d + 1 … in their order.

    Args:
        baskets: n sets of d items.
        length: m.
        rng: The source of randomness.

    Returns:
        Shape (n, m): items in ascending order, then dummies in descending order; column j has an item or d + m − 1 − j.
    """
    kept, d = baskets.cut(length, rng), baskets.size
    full = np.tile(np.arange(d + length - 1, d - 1, -1), (len(kept), 1))
    owners = kept.owners
    full[owners, np.arange(len(owners)) - kept.offsets[owners]] = kept.codes
    return full


def per_user(p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    """What a user adds to the variance of an element's count: one who holds it, and one who does not."""
    return p * (1 - p) / (p - q) ** 2, q * (1 - q) / (p - q) ** 2


def members_of(number: int, d: int, length: int) -> list[list[int]]:
    """What a set may become by `complete`, each as likely: one list, or all choices of m items where it is larger.

    Args:
        number: The set, with the first item's bit lowest.
        d: Number of items.
        length: m.
    """
    items = [v for v in range(d) if number >> v & 1]
    dummies = list(range(d, d + length - len(items)))
    return [[*each, *dummies] for each in combinations(items, min(len(items), length))]


def total_variance(p: Floats, q: Floats, d: int, m: int, criterion: str) -> Floats:
    """What a criterion minimises: the variances of all elements' counts together, per user.

    Args:
        p: Probabilities that a report supports an element of the set.
        q: The same of others; of the same shape.
        d: Number of items.
        m: Number of elements in a set.
        criterion: "variance", with m elements in the set; "published", with one.
    """
    held = m if criterion == "variance" else 1
    with np.errstate(divide="ignore"):  # where rounding makes p and q equal, the variance is infinite
        return np.asarray((held * p * (1 - p) + (d + m - held) * q * (1 - q)) / (p - q) ** 2, dtype=np.float64)
