"""Which n hides a user: counted per batch, over groups of users, and over collections.

n is the number of reports in **one batch** from **distinct authenticated users** who collude with **nobody** who sees
the output, the user in question among them. It is never the number received:

- the analyst, a dishonest shuffler or a party knows its own reports and those that it flooded the batch with, and takes
  them out: each such share lowers n;
- reports in other batches hide nobody; what is collected in several batches has the n of the smallest;
- of several shufflers one after the other, one honest one makes the order uniform; their number does not enter.

A party that shuffles its own records' reports hides nothing from itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ldp.accounting.composition import Guarantee, parallel
from ldp.accounting.shuffling import Local, amplified_epsilon, check_batch
from link.errors import ConfigurationError

_MOST: Final = 1 << 42


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports that are shuffled together and come out at once.

    Attributes:
        local: The mechanism that they are made by, or its ε₀.
        reports: How many, from distinct authenticated users with one report each.
        colluding: The share of them by users who collude with somebody who sees the output, or whom that one has made
            up; taken as the decimal number that it is written as.
    """

    local: Local
    reports: int
    colluding: float | Fraction = 0

    def __post_init__(self) -> None:
        check_batch(self.reports)
        _share(self.colluding)

    @property
    def n(self) -> int:
        """Reports that hide each other; at least 1, the user's own."""
        return max(1, self.reports - math.ceil(self.reports * _share(self.colluding)))

    def guarantee(self, delta: float) -> Guarantee:
        """The guarantee of each honest user in the batch.

        Args:
            delta: δ.

        Raises:
            ConfigurationError: δ is out of range.
        """
        return Guarantee(amplified_epsilon(self.local, self.n, delta), delta)


def collection(batches: Iterable[Batch], delta: float) -> Guarantee:
    """The guarantee of a collection in several batches, or by several groups of users, with one report a user in all.

    It is that of the worst batch: a phase in which a tenth of the users take part has the n of a tenth.

    Args:
        batches: Of all groups and phases.
        delta: δ.

    Raises:
        ConfigurationError: There is no batch, or δ is out of range.
    """
    return parallel(each.guarantee(delta) for each in batches)


def least_batch(local: Local, epsilon: float, delta: float, colluding: float | Fraction = 0) -> int:
    """The least number of reports in a batch for which (ε, δ) is guaranteed: the minimum that a shuffler waits for.

    Args:
        local: The mechanism, or its ε₀.
        epsilon: ε of the shuffled reports.
        delta: δ.
        colluding: The share of colluding users to expect.

    Raises:
        ConfigurationError: A parameter is out of range, or no batch is large enough.
    """
    if not epsilon > 0:
        raise ConfigurationError(f"no batch gives an epsilon of {epsilon!r}; ask for one above 0")
    low, high = 0, 1
    while amplified_epsilon(local, high, delta) > epsilon:
        low, high = high, 4 * high
        if high > _MOST:
            raise ConfigurationError(
                f"no batch of up to {_MOST:,} reports gives an epsilon of {epsilon!r}; ask for more"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if amplified_epsilon(local, middle, delta) <= epsilon else (middle, high)
    reports = math.ceil(high / (1 - _share(colluding)))
    while Batch(local, reports, colluding).n < high:
        reports += 1
    return reports


def _share(colluding: float | Fraction) -> Fraction:
    if isinstance(colluding, bool) or not isinstance(colluding, int | float | Fraction) or not 0 <= colluding < 1:
        raise ConfigurationError(f"the share of colluding users lies from 0 to below 1, not at {colluding!r}")
    return Fraction(str(colluding)) if isinstance(colluding, float) else Fraction(colluding)
