"""Record linkage by distance (Domingo-Ferrer and Torra 2001): the attack on noise, centres and other numbers.

The attacker has the original numbers of everybody and links each person to the published record that is nearest after
standardisation. It fits any release of numbers, also where there are no equivalence classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError

_CELLS = 1 << 22  # distances that are held at once


@dataclass(frozen=True)
class DistanceLinkage:
    """What the attack achieves.

    Attributes:
        expected_links: Mean over original records of 1/|nearest set| where the own published record is in that set,
            else 0: the share of right links that is expected.
        nearest: Shape (n,): how many published records are nearest to each original one, ties included.
        right: Shape (n,), boolean: whether the own published record is among them.
    """

    expected_links: float
    nearest: NDArray[np.int64]
    right: NDArray[np.bool_]


def distance_linkage(original: ArrayLike, published: ArrayLike, owners: ArrayLike | None = None) -> DistanceLinkage:
    """Links every original record to the nearest published ones.

    Args:
        original: Shape (n, d): what the attacker knows; columns are scaled by their sample standard deviation.
        published: Shape (r, d).
        owners: Shape (r,): the original row that each published record belongs to; None: row i is that of record i.
            An original row that owns no record (suppressed) is never linked rightly; one that owns several is linked
            rightly in proportion to those of them that are nearest.

    Raises:
        ConfigurationError: Columns or owners do not match, or there are no rows.
    """
    x, y = np.asarray(original, dtype=np.float64), np.asarray(published, dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or min(x.size, y.size) == 0:
        raise ConfigurationError(f"Linkage compares records; shapes {x.shape} and {y.shape} have no columns in common.")
    owner = np.arange(len(y)) if owners is None else np.asarray(owners, dtype=np.int64)
    if owner.shape != (len(y),) or (owner < 0).any() or (owner >= len(x)).any():
        raise ConfigurationError("Each published record needs one owner among the original rows.")
    deviation = x.std(axis=0, ddof=1) if len(x) > 1 else np.ones(x.shape[1])
    scale = np.where(deviation > 0, deviation, 1.0)
    x, y = x / scale, y / scale
    nearest, mine = np.empty(len(x), np.int64), np.empty(len(x), np.int64)
    step = max(1, _CELLS // len(y))
    for start in range(0, len(x), step):
        part = x[start : start + step]
        squares = np.zeros((len(part), len(y)))
        for column in range(x.shape[1]):
            squares += (part[:, column, None] - y[None, :, column]) ** 2
        closest = squares <= squares.min(axis=1, keepdims=True) * (1 + 1e-12) + 1e-24  # ties up to rounding
        nearest[start : start + step] = closest.sum(axis=1)
        mine[start : start + step] = (closest & (owner == np.arange(start, start + len(part))[:, None])).sum(axis=1)
    return DistanceLinkage(float((mine / nearest).mean()), nearest, mine > 0)
