"""Minimum counts in exact rational arithmetic: of the whole, and of one party in the one-shot strategy."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

from link.errors import ConfigurationError, PolicyDenied, shareable

ALL_ROWS: Final = "all parties' transactions"

FLOOR: Final = 8  # rows that share what a party puts into an open union, as far as c allows


def minimum_count(min_support: Decimal | int, n_rows: int) -> int:
    """The least count of a frequent itemset.

    Args:
        min_support: A fraction in (0, 1], or a count from 1 on.
        n_rows: Number of transactions of all parties.

    Returns:
        The count itself, or ceil(min_support * n_rows), at least 1.

    Raises:
        ConfigurationError: The support is neither, or the count exceeds the number of transactions.
    """
    if isinstance(min_support, int):
        if isinstance(min_support, bool) or min_support < 1:
            raise ConfigurationError(
                f"min_support is {min_support}, but a count must be at least 1; "
                "give a whole number from 1 on or a fraction above 0 and up to 1."
            )
        if min_support > n_rows:
            raise ConfigurationError(f"min_support asks for {min_support} transactions, but there are fewer; lower it.")
        return min_support
    share = _fraction_of(min_support)
    scaled = share * n_rows
    return max(1, -(-scaled.numerator // scaled.denominator))


def agreed_count(min_support: Decimal | int, n_rows: int, *, floor: int, me: str, rows: str = ALL_ROWS) -> int:
    """The least count of a joint job, as all its parties derive it from a number of rows that all know.

    Args:
        min_support: As in `minimum_count`.
        n_rows: What was opened.
        floor: The lowest c that this party's policy allows.
        me: This party.
        rows: Of what the count is.

    Raises:
        ConfigurationError: min_support is a count above the number of rows.
        PolicyDenied: c is below the floor.
    """
    try:
        found = minimum_count(min_support, n_rows)
    except ConfigurationError as error:
        raise shareable(error) from None
    check_floor(found, floor, me, rows)
    return found


def check_floor(count: int, floor: int, me: str, rows: str = ALL_ROWS) -> None:
    """Refuses a c that all parties know where it is below what this party's policy allows.

    Raises:
        PolicyDenied: It is.
    """
    if count < floor:
        raise shareable(below_floor(me, floor, rows))


def below_floor(me: str, least: int, rows: str = ALL_ROWS) -> PolicyDenied:
    """The refusal of a fraction that comes to a lower count than a party's policy allows.

    It names no fraction that would do: the number of rows follows from it, which readers of this need not know.

    Args:
        me: The party.
        least: The lowest count that it allows.
        rows: Of what the count is.
    """
    return PolicyDenied(
        f"the policy of {me} asks for a count of at least {least} (rule min_count), and the job's min_support comes to "
        f"fewer of {rows}; set min_support to a count of at least {least}, or to a larger fraction",
        party=me,
    )


def shows_rows(me: str, least: int) -> PolicyDenied:
    """The refusal of a c by which a union of items would name those of a single row, though the party has a floor.

    Args:
        me: The party.
        least: The lowest count that it allows.
    """
    return PolicyDenied(
        f"the policy of {me} asks for a count of at least {least} (rule min_count), and the job's min_support comes to "
        'one row at some party, whose items would be named; set universe = "hidden", or a larger min_support',
        party=me,
    )


def local_threshold(
    min_support: Decimal | int,
    n_rows_local: int,
    minimum_count: int,
    n_parties: int,
    lambda_: Decimal,
    n_rows: int,
) -> int:
    """The count from which on one party calls an itemset locally frequent: tau_i.

    It is 1 + floor(w * s * |DB_i| + (1 - w)(c - 1) / n), rounded down to a class. The sum of (tau_i - 1) over all
    parties stays below c, hence an itemset whose total reaches c reaches tau_i at some party: otherwise its total would
    be at most that sum.

    The weight w is lambda, or as much less as keeps the threshold of a party with few rows at `FLOOR` or at an equal
    share of c: what only a few rows have is revealed by no union then. Classes keep jobs with other thresholds from
    finding the exact count of one party.

    Args:
        min_support: s, the fraction or count of the job; a count c means c / N.
        n_rows_local: |DB_i|, this party's number of transactions.
        minimum_count: c, the least count over all parties.
        n_parties: n.
        lambda_: Public weight in [0, 1) between a threshold by size and an equal one.
        n_rows: N, the number of transactions over all parties.

    Raises:
        ConfigurationError: lambda is outside [0, 1), or the support is not valid.
    """
    weight = _weight(lambda_, minimum_count, n_parties)
    support = Fraction(min_support, max(n_rows, 1)) if isinstance(min_support, int) else _fraction_of(min_support)
    threshold = weight * support * n_rows_local + (1 - weight) * Fraction(minimum_count - 1, n_parties)
    return threshold_class(1 + threshold.numerator // threshold.denominator)


def tells_of_rows(minimum_count: int, n_parties: int) -> bool:
    """Whether a local threshold may be 1, so that a union of what is locally frequent would show single rows.

    Where c is 1 the result shows them in any case.
    """
    return 1 < minimum_count <= n_parties


def threshold_class(threshold: int) -> int:
    """The largest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is not above it."""
    unit = 1 << max(threshold.bit_length() - 2, 0)
    return threshold // unit * unit


def _weight(lambda_: Decimal, minimum_count: int, n_parties: int) -> Fraction:
    if not lambda_.is_finite() or not 0 <= lambda_ < 1:
        raise ConfigurationError(f"lambda is {lambda_}, but it must be at least 0 and below 1.")
    most = 1 - Fraction((FLOOR - 1) * n_parties, max(minimum_count - 1, 1))
    return max(Fraction(0), min(Fraction(lambda_), most))


def _fraction_of(min_support: Decimal) -> Fraction:
    if not min_support.is_finite() or not 0 < min_support <= 1:
        raise ConfigurationError(
            f"min_support is {min_support}, but a fraction must be above 0 and up to 1; "
            "a number of transactions is written as a whole number, without a point."
        )
    return Fraction(min_support)
