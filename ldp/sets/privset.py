"""PrivSet: a report is a set of k elements, likelier by e^ε if it has any element in common with the user's set.

With d items, m dummies and a user's set s padded to m elements, a report is one of the subsets z of k elements:

    Pr[z | s] ∝ e^ε if z meets s, else 1,        ρ = C(d, k) / C(d + m, k), the share of subsets that do not meet s

and z meets s with probability h = e^ε(1 − ρ) / (e^ε(1 − ρ) + ρ). So

    p = Pr[v ∈ z | v ∈ s] = h·(k/(d + m)) / (1 − ρ)
    q = Pr[v ∈ z | v ∉ s] = (1 − h)·k/d + h·(k/(d + m) − ρ·k/d) / (1 − ρ)

ρ is a product of m fractions, so that no binomial coefficient of d has to be computed for them: any d will do.

Source: Wang, Huang, Nie et al., "PrivSet: Set-Valued Data Analyses with Locale Differential Privacy", INFOCOM 2018.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows, bits_at, clean, column_sums, row_bytes, set_bits
from ldp.arithmetic.sampling import coin_flips
from ldp.arithmetic.subsets import resize, subset_lists, subset_rows
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import DomainLike
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports
from ldp.sets.baskets import Baskets
from ldp.sets.exact_choice import ExactChoice
from ldp.sets.set_oracle import SetOracle, complete, members_of, total_variance
from link.errors import ConfigurationError

_MOST_ELEMENTS: Final = 1 << 16
_LONGEST_LIST: Final = 256
_LARGEST_ENUMERATED: Final = 6
_USERS: Final = 1 << 14  # who are perturbed together


class PrivSet(SetOracle):
    """Reports k of the d + m elements: a uniform set among those that meet the user's own, or one that does not.

    Args:
        domain: The items, their number, or their texts; with the dummies at most 65,536.
        epsilon: The privacy budget ε: of any two sets, whatever they hold.
        length: m; a set that is larger is cut.
        criterion: What k is chosen by: "variance" for the least total variance, of m items that are held and d that are
            not; "published" for the score of the paper's code, which counts one item as held.

    Attributes:
        k: How many elements a report has.
        listed: Whether a report lists them, in their order; otherwise it has a bit for each element.

    Raises:
        ConfigurationError: There are too many elements, or a parameter is wrong.
    """

    name: ClassVar[str] = "privset"

    def __init__(self, domain: DomainLike, epsilon: float, length: int, criterion: str = "variance") -> None:
        super().__init__(domain, epsilon, length, criterion)
        if self.elements > _MOST_ELEMENTS:
            raise ConfigurationError(
                f"PrivSet takes at most {_MOST_ELEMENTS:,} items and dummies, not {self.elements:,}; take the Wheel "
                "mechanism or padding and sampling, whose reports stay short"
            )
        d, m, grown = self.domain.size, length, exp_below(self.epsilon)
        self.k = _best_size(d, m, math.exp(self.epsilon), criterion)
        self._apart = Fraction(1)
        for j in range(1, m + 1):
            self._apart *= Fraction(d - self.k + j, d + j)
        meets = grown * (1 - self._apart)
        self._meets = Dyadic.floor(meets / (meets + self._apart), PRECISE_BITS)
        k = Fraction(self.k)
        within, outside = self._rates
        self.p = within * k / (d + m)
        self.q = outside * self._apart * k / d + within * (k / (d + m) - self._apart * k / d)
        # Long lists take much work to draw: they have to be worth it.
        self.listed = self.k <= _LONGEST_LIST and 2 * self.k * self._code_type.itemsize <= row_bytes(self.elements)

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """Probabilities of a report that meets the user's set and of one that does not, over that of a uniform one."""
        return self._meets.fraction / (1 - self._apart), (1 - self._meets.fraction) / self._apart

    @property
    def exact_epsilon(self) -> float:
        """Of a report that meets one set and not the other."""
        within, outside = self._rates
        return log_above(within / outside)

    def both(self, held: int) -> Fraction:
        """The probability that a report has two given elements, if `held` (0, 1 or 2) of them are in the set."""
        d, n, k = self.domain.size, self.elements, self.k
        within, outside = self._rates
        anywhere, apart = Fraction(k * (k - 1), n * (n - 1)), Fraction(k * (k - 1), d * (d - 1))
        if held:
            return within * anywhere
        return outside * self._apart * apart + within * (anywhere - self._apart * apart)

    @property
    def layout(self) -> tuple[Field, ...]:
        """K elements if that is half as long or less, otherwise d + m bits."""
        if self.listed:
            return (Field(self._code_type.name, self.k),)
        return (Field("uint8", row_bytes(self.elements)),)

    @property
    def _code_type(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.elements - 1)

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        full = complete(Baskets.of(values, self.domain), self.length, rng)
        draw = self._lists if self.listed else self._rows
        field = self.layout[0]
        reports = np.empty(field.shape(len(full)), dtype=field.dtype)
        for start in range(0, len(full), _USERS):
            part = full[start : start + _USERS]
            reports[start : start + _USERS] = draw(part, self._common(len(part), rng), rng)
        return (reports,)

    def _common(self, n: int, rng: Randomness) -> NDArray[np.int64]:
        """How many elements each report has in common with the set: 0, or as in a uniform subset that meets it."""
        meets = coin_flips(self._meets, n, rng)
        common = np.zeros(n, dtype=np.int64)
        common[meets] = 1 + self._overlaps.draw(int(np.count_nonzero(meets)), rng)
        return common

    @cached_property
    def _overlaps(self) -> ExactChoice:
        """How many elements more than one a uniform subset has in common with a set that it meets."""
        d, m, k = self.domain.size, self.length, self.k
        return ExactChoice([math.comb(m, i) * math.comb(d, k - i) for i in range(1, min(k, m) + 1)])

    # Given how many, both parts are uniform: i of m places, and k − i of the d elements that are not in the set. What
    # is drawn is that the places are the last m elements; then place j is swapped with the j-th element of the set.
    # Columns of `full` have their own place or an item, so that swaps do not disturb each other.
    def _lists(self, full: NDArray[np.int64], common: NDArray[np.int64], rng: Randomness) -> NDArray[np.int64]:
        """Reports as sorted lists."""
        d, m, k = self.domain.size, self.length, self.k
        lists = np.empty((len(full), k), dtype=np.int64)
        for i in np.unique(common).tolist():
            users = np.flatnonzero(common == i)
            others = subset_lists(k - i, len(users), d, rng)
            for j in range(m):
                others = np.where(others == full[users, j, None], d + m - 1 - j, others)
            own = np.take_along_axis(full[users], subset_lists(i, len(users), m, rng), axis=1)
            lists[users] = np.concatenate([own, others], axis=1)
        return np.sort(lists, axis=1)

    def _rows(self, full: NDArray[np.int64], common: NDArray[np.int64], rng: Randomness) -> Rows:
        """Reports as rows of bits."""
        d, m = self.domain.size, self.length
        others = subset_rows(self.k, len(full), d, rng)
        resize(others, self.k - common, d, rng)
        own = np.zeros((len(full), row_bytes(m)), dtype=np.uint8)
        resize(own, common, m, rng)
        rows = np.zeros((len(full), row_bytes(d + m)), dtype=np.uint8)
        rows[:, : others.shape[1]] = others
        for j in range(m):
            element, place = full[:, j], np.full(len(full), d + m - 1 - j)
            set_bits(rows, place, bits_at(rows, element[:, None])[:, 0])
            set_bits(rows, element, bits_at(own, np.array([j]))[:, 0])
        return rows

    def _valid(self, reports: Reports) -> bool:
        sets = reports.fields[0]
        if self.listed:
            return bool(np.all(sets[:, 1:] > sets[:, :-1])) and bool(np.all(sets < self.elements))
        return clean(sets, self.elements) and bool(np.all(np.bitwise_count(sets).sum(axis=1, dtype=np.int64) == self.k))

    def tally(self, reports: Reports) -> Tally:
        """How many reports have each element."""
        sets = reports.fields[0]
        if self.listed:
            return np.bincount(sets.ravel(), minlength=self.elements).astype(np.int64, copy=False)
        return column_sums(sets, self.elements)

    def channel(self) -> Channel:
        """From all 2^d sets, as numbers with the first item's bit lowest, to all sets of k elements, in their order."""
        d, m, k = self.domain.size, self.length, self.k
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the sets of {d} items are not enumerated")
        within, outside = (rate / math.comb(self.elements, k) for rate in self._rates)
        reports = [set(each) for each in combinations(range(self.elements), k)]
        channel = []
        for number in range(1 << d):
            cuts = [set(each) for each in members_of(number, d, m)]
            meets = [sum(1 for each in cuts if each & report) for report in reports]
            channel.append([(within * i + outside * (len(cuts) - i)) / len(cuts) for i in meets])
        return channel

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """Numbers of the reports in lexicographic order."""
        sets = reports.fields[0]
        if not self.listed:
            sets = np.nonzero(np.unpackbits(sets, axis=1, bitorder="little"))[1].reshape(len(sets), self.k)
        numbers = {each: place for place, each in enumerate(combinations(range(self.elements), self.k))}
        return np.array([numbers[tuple(each)] for each in sets.tolist()], dtype=np.int64)

    def blanket(self) -> Blanket:
        """Between those of reports that meet a set and of those that do not, over the uniform one."""
        within, outside = self._rates
        return Blanket.between(outside, within)


def _best_size(d: int, m: int, grown: float, criterion: str) -> int:
    """K of the least total variance, or of the published score.

    Args:
        d: Number of items.
        m: Number of elements in a set.
        grown: e^ε.
        criterion: One of `CRITERIA`.
    """
    k = np.arange(1, d)
    log_apart = np.zeros(len(k))
    for j in range(1, m + 1):
        log_apart += np.log((d - k + j) / (d + j))
    meets = grown * -np.expm1(log_apart)
    apart = np.exp(log_apart)
    p = grown * k / (d + m) / (meets + apart)
    q = (apart * k / d + grown * (k / (d + m) - apart * k / d)) / (meets + apart)
    return int(k[np.argmin(total_variance(p, q, d, m, criterion))])
