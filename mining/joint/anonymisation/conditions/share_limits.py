"""Limits of the share n_cs / N_c that a value has in a class, as comparisons of shared counts.

A share is a fraction whose denominator is N_c ≤ N. So whatever number x is, n_cs ≤ x·N_c holds exactly where
n_cs ≤ (p/q)·N_c does, p/q being the largest fraction ≤ x with a denominator of at most N; and so for <, ≥ and >. Limits
that are irrational, or are written with many digits, become whole coefficients of at most N without any rounding.

    (α, k):             n_cs / N_c ≤ α
    recursive (c, 1):   n_cs / N_c < c;  (c, 2): < c / (1 + c), since the largest n_cs decides
    β-likeness:         n_cs / N_c ≤ (1 + β)·q_s;  enhanced: ≤ (1 − ln q_s)·q_s, too
    δ-disclosure:       q_s·e^−δ < n_cs / N_c < q_s·e^δ, or n_cs = 0

q_s is the share of s in all rows.

Rounds:     those of a comparison and of ANDs; with limits from below those of another comparison.
Source:     the models in `anonymize.models`; Graham, Knuth and Patashnik, Concrete Mathematics, section 4.5 (neighbours
            of a fraction in a Farey series).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.models import AlphaK, BetaLikeness, DeltaDisclosure, RecursiveDiversity
from anonymize.models.rationals import TOLERANCE, exact
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from mining.joint.anonymisation.conditions.bits import all_of, joined
from mining.joint.anonymisation.conditions.value_counts import ValueCounts, constant_bits, exact_width, parted_bits

_DIGITS: Final = 60  # of logarithms: two fractions of counts differ in the first 40
_FAR: Final = 64  # no two shares of counts differ by a factor e^64
_SLACK: Final = Fraction(repr(TOLERANCE))


@dataclass(frozen=True, eq=False)
class ShareLimits:
    """Between which fractions of a class the rows with some values may be.

    Attributes:
        n_rows: N, of all parties; no denominator exceeds it.
        most: By value the largest share, below 1.
        least: By value the smallest share that it has if it has any.
    """

    n_rows: int
    most: Mapping[int, Fraction]
    least: Mapping[int, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        exact_width(self._largest)

    async def bits(self, session: Session, parties: TwoParty, counts: ValueCounts) -> XorShare:
        """See `ClassTest`."""
        if not self.most and not self.least:
            return constant_bits(parties, counts.classes, met=True)
        slacks = [_slack(counts, value, limit) for value, limit in self.most.items()]
        slacks += [-_slack(counts, value, limit) for value, limit in self.least.items()]
        bits = await at_least(session.lane("shares"), parties, joined(slacks), 0, exact_width(self._largest))
        within = parted_bits(bits, counts.classes)
        if self.least:
            every = joined([counts.of(value) for value in self.least])
            some = await at_least(session.lane("held"), parties, every, 1, width_for(self.n_rows))
            place = len(self.most)
            # A value with as many rows as it must have has some; the bits differ just where it has some, but too few.
            held = parted_bits(some, counts.classes)
            within[place:] = [~(enough ^ has) for enough, has in zip(within[place:], held, strict=True)]
        return await all_of(session.lane("all"), parties, within)

    @property
    def _largest(self) -> int:
        """What no slack exceeds."""
        limits = (*self.most.values(), *self.least.values())
        return max((max(each.numerator, each.denominator) for each in limits), default=0) * self.n_rows


def frequency_limits(model: AlphaK, values: Sequence[str], n_rows: int) -> ShareLimits:
    """(α, k)-anonymity.

    Args:
        model: Its α is at most 1.
        values: All that may occur, in the order of the counts.
        n_rows: N, of all parties.
    """
    meant = range(len(values)) if model.values is None else [values.index(value) for value in model.values]
    return _at_most(n_rows, dict.fromkeys(meant, largest_fraction(exact(model.alpha, "alpha"), n_rows)))


def recursive_limits(model: RecursiveDiversity, values: int, n_rows: int) -> ShareLimits:
    """Recursive (c, l)-diversity with l of at most 2; arguments as of `frequency_limits`."""
    c = exact(model.c, "c")
    limit = largest_fraction(c if model.l == 1 else c / (1 + c), n_rows, below=True)
    return _at_most(n_rows, dict.fromkeys(range(values), limit))


def likeness_limits(model: BetaLikeness, totals: NDArray[np.int64]) -> ShareLimits:
    """β-likeness.

    Args:
        model: Perhaps enhanced.
        totals: Rows of all parties with each value, shape (values,).
    """
    n_rows, beta, most = int(totals.sum()), exact(model.beta, "beta"), dict[int, Fraction]()
    for value in np.flatnonzero(totals).tolist():
        share = Fraction(int(totals[value]), n_rows)
        limit = (1 + beta) * share
        if model.enhanced:
            limit = min(limit, (1 + _logarithm(1 / share)) * share + _SLACK)
        most[value] = largest_fraction(limit, n_rows)
    return _at_most(n_rows, most)


def disclosure_limits(model: DeltaDisclosure, totals: NDArray[np.int64]) -> ShareLimits:
    """δ-disclosure privacy; arguments as of `likeness_limits`."""
    n_rows = int(totals.sum())
    factor = _exponential(min(exact(model.delta, "delta") - _SLACK, Fraction(_FAR)))
    most, least = {}, {}
    for value in np.flatnonzero(totals).tolist():
        share = Fraction(int(totals[value]), n_rows)
        most[value] = largest_fraction(share * factor, n_rows, below=True)
        least[value] = least_fraction_above(share / factor, n_rows)
    within_one_row = Fraction(1, n_rows)
    return ShareLimits(n_rows, _below_one(most), {s: each for s, each in least.items() if each > within_one_row})


def largest_fraction(limit: Fraction, most: int, *, below: bool = False) -> Fraction:
    """The largest fraction ≤ limit, or < limit, whose denominator is at most `most`.

    Args:
        limit: At least 0; above 0 if `below`.
        most: At least 1.
        below: Whether the limit itself is excluded.
    """
    near = limit.limit_denominator(most)
    if near < limit or (near == limit and not below):
        return near
    # The nearest fraction is the limit or lies above it: meant is the one before it in the Farey series.
    p, q = near.numerator, near.denominator
    before = pow(p, -1, q) if q > 1 else 0
    before += (most - before) // q * q
    return Fraction((p * before - 1) // q, before)


def least_fraction_above(limit: Fraction, most: int) -> Fraction:
    """The least fraction > limit whose denominator is at most `most`; see `largest_fraction`."""
    whole = limit.numerator // limit.denominator + 1
    return whole - largest_fraction(whole - limit, most, below=True)


def _at_most(n_rows: int, most: Mapping[int, Fraction]) -> ShareLimits:
    return ShareLimits(n_rows, _below_one(most))


def _below_one(limits: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Those that a share can exceed."""
    return {value: limit for value, limit in limits.items() if limit < 1}


def _slack(counts: ValueCounts, value: int, limit: Fraction) -> AdditiveShare:
    """The share of p·N_c − q·n_cs for the limit p/q."""
    return counts.sizes.times_public(limit.numerator) - counts.of(value).times_public(limit.denominator)


def _logarithm(number: Fraction) -> Fraction:
    with localcontext(prec=_DIGITS):
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).ln())


def _exponential(number: Fraction) -> Fraction:
    with localcontext(prec=_DIGITS):
        return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).exp())
