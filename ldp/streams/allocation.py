"""Series of budgets for several queries to the same users, and whether to split users instead.

Every series adds up to ε at most, in exact arithmetic, however far it is followed: each term is rounded down to the
grid of `ldp.streams.composition`, and cut to what the terms before have left. Infinite ones serve streams whose length
nobody knows; their terms fall below what a mechanism can use sooner or later, geometric ones first. For streams without
an end take the methods of `ldp.streams.methods`.

All is computed in decimals and fractions, so that a service and its clients get the same terms on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count, islice, takewhile
from typing import Any, Final

from ldp.budget import LEAST_EPSILON, check_epsilon, exp_below
from ldp.domain import Domain, DomainLike
from ldp.registry import oracle
from ldp.streams.composition import exact, rounded_down
from ldp.streams.dissimilarity import mean_variance
from link.errors import ConfigurationError

SERIES: Final = ("uniform", "geometric", "taylor", "p-series", "telescoping", "by-error")

_DECIMALS: Final = Context(prec=40)
_SLACK: Final = 1 - Fraction(1, 10**15)  # far more than the error of a weight in decimals, that of ζ included
_PLACES: Final = 30
_DIRECT: Final = 20  # terms of ζ that are added up one by one
_NOTHING: Final = Decimal("1e-80")
_BERNOULLI: Final = tuple(map(Fraction, ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510")))


def budgets(
    series: str,
    epsilon: float,
    queries: int | None = None,
    *,
    ratio: float | None = None,
    exponent: float | None = None,
    errors: Sequence[float] = (),
) -> tuple[Fraction, ...]:
    """The budgets of queries one after the other, each at least the least that a mechanism works with.

    Args:
        series: One of `SERIES`.
        epsilon: ε of all queries together.
        queries: How many; `uniform` needs it, and of an infinite series there are by default as many as have terms that
            are large enough.
        ratio: Of `geometric`.
        exponent: Of `p-series`.
        errors: Of `by-error`, one for each query.

    Raises:
        ConfigurationError: There is no such series, a parameter is wrong or not of this series, or a query would get
            too little.
    """
    if series not in SERIES:
        raise ConfigurationError(f"there is no series '{series[:40]}' of budgets; take one of {', '.join(SERIES)}")
    own = {"geometric": "ratio", "p-series": "exponent", "by-error": "errors"}.get(series)
    for name, given in (("ratio", ratio is not None), ("exponent", exponent is not None), ("errors", bool(errors))):
        if given and name != own:
            raise ConfigurationError(f"the series '{series}' has no {name}; leave it out")
    return _budgets(series, epsilon, queries, ratio, exponent, tuple(errors))


@lru_cache(maxsize=16)
def _budgets(
    series: str,
    epsilon: float,
    queries: int | None,
    ratio: float | None,
    exponent: float | None,
    errors: tuple[float, ...],
) -> tuple[Fraction, ...]:
    terms: Iterable[Fraction]
    match series:
        case "uniform":
            if queries is None:
                raise ConfigurationError("a uniform series divides the budget among a number of queries; name it")
            _check_number(series, epsilon, queries)
            terms = uniform(epsilon, queries)
        case "by-error":
            if queries not in (None, len(errors)):
                raise ConfigurationError(f"{len(errors)} errors are of as many queries, and there are {queries:,}")
            _check_number(series, epsilon, len(errors))
            terms = by_error(epsilon, errors)
        case "geometric":
            terms = geometric(epsilon) if ratio is None else geometric(epsilon, ratio)
        case "p-series":
            terms = p_series(epsilon) if exponent is None else p_series(epsilon, exponent)
        case _:
            terms = {"taylor": taylor, "telescoping": telescoping}[series](epsilon)
    found = tuple(islice(takewhile(lambda term: term >= LEAST_EPSILON, terms), queries))
    wanted = len(errors) if series == "by-error" else queries
    if len(found) < (1 if wanted is None else wanted):
        raise _too_little(series, len(found))
    return found


def _check_number(series: str, epsilon: float, queries: int) -> None:
    """Refuses more queries than any series has enough for, before their terms are computed."""
    if queries * LEAST_EPSILON > check_epsilon(epsilon):
        raise _too_little(series, math.floor(epsilon / LEAST_EPSILON))


def _too_little(series: str, enough: int) -> ConfigurationError:
    return ConfigurationError(
        f"the series '{series}' leaves less than {LEAST_EPSILON:g} for query {enough + 1:,}; take fewer queries, more "
        "budget, or another series"
    )


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
    if not errors or not all(math.isfinite(each) and each > 0 for each in errors):
        raise ConfigurationError("a budget is divided among one query or more, each with a positive finite error")
    third = _DECIMALS.divide(Decimal(1), Decimal(3))
    roots = [_DECIMALS.power(_decimal(each), third) for each in errors]
    largest = max(roots)
    # Whole numbers of one unit, so that the sum of many is quick.
    parts = [int(_DECIMALS.divide(root, largest).scaleb(_PLACES)) for root in roots]
    total = sum(parts)
    return tuple(_within(epsilon, (Fraction(part, total) for part in parts)))


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
    power, total = _decimal(-p), zeta(float(p))
    return _within(epsilon, (Fraction(_DECIMALS.power(Decimal(i), power)) / total * _SLACK for i in count(1)))


def _decimal(number: float) -> Decimal:
    """A number to 40 digits; the exact one may have hundreds, with which powers take long."""
    return _DECIMALS.create_decimal_from_float(float(number))


def zeta(p: float) -> Fraction:
    """ζ(p) to 20 digits: the first terms, and the Euler–Maclaurin formula for the rest."""
    exponent, power = Fraction(p), _decimal(-p)
    total, last = Fraction(0), Fraction(1)
    for i in range(2, _DIRECT + 1):
        total += last
        term = _DECIMALS.power(Decimal(i), power)
        if term < _NOTHING:  # as are all that follow; in fractions they would take seconds
            return total
        last = Fraction(term)
    total += last * (_DIRECT / (exponent - 1) + Fraction(1, 2))
    factor = last * exponent / _DIRECT
    for k, number in enumerate(_BERNOULLI, start=1):
        total += number / math.factorial(2 * k) * factor
        factor *= (exponent + 2 * k - 1) * (exponent + 2 * k) / _DIRECT**2
    return total


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
