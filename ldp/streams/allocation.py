"""Series of budgets for several queries to the same users, and whether to split users instead.

Every series adds up to ε at most, in exact arithmetic, however far it is followed: each term is rounded down to the
grid of `ldp.streams.composition`, and cut to what the terms before have left. Infinite ones serve streams whose length
nobody knows; their terms fall below what a mechanism can use sooner or later, geometric ones first. For streams without
an end take the methods of `ldp.streams.methods`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any, Final

import numpy as np
from scipy import special

from ldp.budget import check_epsilon, exp_below
from ldp.domain import Domain, DomainLike
from ldp.registry import oracle
from ldp.streams.composition import exact, rounded_down
from ldp.streams.dissimilarity import mean_variance
from link.errors import ConfigurationError

# Of a weight that was computed in floats, far more than their error; `_within` makes sure of the rest.
_FLOAT_SLACK: Final = 1 - Fraction(1, 1 << 40)


def uniform(epsilon: float, queries: int) -> tuple[Fraction, ...]:
    """ε/T for each of T queries.

    Raises:
        ConfigurationError: The budget is out of range, or there is no query.
    """
    if isinstance(queries, bool) or not isinstance(queries, int):
        raise ConfigurationError(f"a number of queries is a whole number, not {queries!r}")
    return by_error(epsilon, [1] * queries)


def by_error(epsilon: float, errors: Sequence[float]) -> tuple[Fraction, ...]:
    """Budgets for queries with variances a_i/ε_i² that make the sum of all variances least: ε_i ~ a_i^(1/3).

    Args:
        epsilon: ε of all queries together.
        errors: The a_i, positive.

    Raises:
        ConfigurationError: The budget is out of range, there is no query, or an a_i is not positive.
    """
    array = np.asarray(errors, dtype=np.float64)
    if not array.size or not np.isfinite(array).all() or array.min() <= 0:
        raise ConfigurationError("a budget is divided among one query or more, each with a positive finite error")
    roots = [Fraction(float(root)) for root in np.cbrt(array)]
    return tuple(_within(epsilon, (root / sum(roots) for root in roots)))


def geometric(epsilon: float, ratio: float = 0.5) -> Iterator[Fraction]:
    """ε·(1 − r)·r^(i−1) for i = 1, 2 and so on.

    Args:
        epsilon: ε of all queries together.
        ratio: r, strictly between 0 and 1.

    Raises:
        ConfigurationError: A parameter is out of range.
    """
    if not 0 < exact(ratio) < 1:
        raise ConfigurationError(f"the ratio of a geometric series lies between 0 and 1, not at {ratio:g}")

    def weights() -> Iterator[Fraction]:
        weight = 1 - exact(ratio)
        while True:
            yield weight
            weight = rounded_down(weight * exact(ratio))  # or fractions would grow longer with each term

    return _within(epsilon, weights())


def taylor(epsilon: float) -> Iterator[Fraction]:
    """ε/((e − 1)·i!) for i = 1, 2 and so on: the terms of e's Taylor series.

    Raises:
        ConfigurationError: The budget is out of range.
    """

    def weights() -> Iterator[Fraction]:
        weight = 1 / (exp_below(1) - 1)  # above 1/(e − 1) by 10^-58; `_within` cuts it
        for i in count(2):
            yield weight
            weight = rounded_down(weight / i)

    return _within(epsilon, weights())


def p_series(epsilon: float, p: float = 2.0) -> Iterator[Fraction]:
    """ε/(ζ(p)·i^p) for i = 1, 2 and so on.

    Args:
        epsilon: ε of all queries together.
        p: The exponent, above 1; the nearer to 1, the slower budgets fall, and the smaller is the first.

    Raises:
        ConfigurationError: A parameter is out of range.
    """
    if exact(p) <= 1:
        raise ConfigurationError(f"a p-series has a sum for exponents above 1 only, not for {p:g}")
    total = float(special.zeta(p))
    return _within(epsilon, (Fraction(float(i) ** -p / total) * _FLOAT_SLACK for i in count(1)))


def telescoping(epsilon: float) -> Iterator[Fraction]:
    """ε/(i·(i + 1)) for i = 1, 2 and so on.

    Raises:
        ConfigurationError: The budget is out of range.
    """
    return _within(epsilon, (Fraction(1, i * (i + 1)) for i in count(1)))


@dataclass(frozen=True, slots=True)
class Splitting:
    """Variances of a frequency, mean over the domain, times the users.

    Attributes:
        budget: If all users answer every query with ε/T.
        users: If each user answers one query with ε.
        drawing: What the draw of users for a query adds to `users` at most, that is, for values that are all as common.
    """

    budget: float
    users: float
    drawing: float


def splitting(name: str, domain: DomainLike, epsilon: float, queries: int, **parameters: Any) -> Splitting:
    """What T queries cost if the budget is split, and if the users are.

    The variance of an oracle falls faster than 1/ε, and like 1/n: so users are to be split. At large ε, though, reports
    are so exact that the draw of users is what counts, and the budget is to be split: for two values from ε/T of about
    1 on, for 16 values from about 3 on.

    Args:
        name: An oracle of `ldp.registry`, or "auto".
        domain: The domain, its size, or the texts of its values.
        epsilon: ε of a user.
        queries: T.
        **parameters: Further parameters of that oracle.

    Raises:
        ConfigurationError: A parameter is out of range; ε/T is a budget too.
    """
    share, size = float(uniform(epsilon, queries)[0]), Domain.of(domain).size
    budget, users = (mean_variance(oracle(name, domain, each, **parameters), 1) for each in (share, epsilon))
    # With many users, n of N drawn without replacement: f(1 − f)/n·(1 − n/N), and n = N/T.
    return Splitting(budget, users * queries, (1 - 1 / size) / size * (queries - 1))


def _within(epsilon: float, weights: Iterable[Fraction]) -> Iterator[Fraction]:
    """The shares of ε that weights with a sum of 1 name; at once checks the budget, as a generator would not."""
    total = Fraction(check_epsilon(epsilon))

    def terms() -> Iterator[Fraction]:
        left = total
        for weight in weights:
            term = min(rounded_down(total * weight), left)
            left -= term
            yield term

    return terms()
