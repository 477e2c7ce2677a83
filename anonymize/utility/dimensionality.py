"""The price of dimensions: why k-anonymity of many quasi-identifiers leaves little (Aggarwal 2005; ch. 20.3.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from link.errors import ConfigurationError


def least_side(n: int, d: int, k: int) -> float:
    """The share F of each domain that a box must cover so that k of n records are expected in it: n·F^d ≥ k.

    For records that are spread evenly and independently: F = (k/n)^(1/d), which goes to 1 as d grows.

    Args:
        n: Records.
        d: Quasi-identifiers.
        k: Records that are wanted in one class.

    Raises:
        ConfigurationError: A number is below 1, or k is above n.
    """
    if min(n, d, k) < 1 or k > n:
        raise ConfigurationError(f"Of n = {n} records k = {k} are wanted in {d} dimensions; needs 1 ≤ k ≤ n and d ≥ 1.")
    return math.exp(math.log(k / n) / d)


@dataclass(frozen=True)
class DimensionPoint:
    """One point of the curve of loss over dimensions.

    Attributes:
        quasi_identifiers: The columns that were anonymised, the first d of the order that was given.
        loss: The loss that was measured.
        least_side: What even and independent columns would need at least; a yardstick, no bound for real data.
    """

    quasi_identifiers: tuple[str, ...]
    loss: float
    least_side: float


def dimension_curve(
    names: Sequence[str], n: int, k: int, loss_of: Callable[[tuple[str, ...]], float]
) -> tuple[DimensionPoint, ...]:
    """Anonymises by the first quasi-identifier, the first two, and so on, and collects the losses.

    Args:
        names: Quasi-identifiers in the order in which they are added.
        n: Records.
        k: Of k-anonymity.
        loss_of: Anonymises by these quasi-identifiers and gives a loss, for example the GCP of a release.

    Returns:
        A point for d = 1, 2, …, as many as names.
    """
    return tuple(
        DimensionPoint(tuple(names[:d]), loss_of(tuple(names[:d])), least_side(n, d, k))
        for d in range(1, len(names) + 1)
    )
