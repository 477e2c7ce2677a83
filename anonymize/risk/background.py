"""Attribute disclosure within a class: what an attacker concludes who also knows what a target does *not* have.

Somebody who knows in which class a target is, and that the target does not have certain sensitive values, is left with
the others: Risk(s | class, excluded X) = n_s/Σ_{u not in X} n_u for s not in X.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from link.errors import ConfigurationError


def posterior(counts: Mapping[str, int], excluded: Collection[str] = ()) -> dict[str, float]:
    """Chances of a class's sensitive values for an attacker who can rule some out.

    Args:
        counts: Rows n_s of each sensitive value in the class.
        excluded: Values that the target is known not to have.

    Returns:
        A chance for each value of `counts`; of an excluded value 0.

    Raises:
        ConfigurationError: Every value of the class is excluded, so what the attacker knows is wrong.
    """
    left = sum(n for value, n in counts.items() if value not in excluded)
    if left <= 0:
        raise ConfigurationError("All sensitive values of the class are excluded, though the target has one of them.")
    return {value: 0.0 if value in excluded else n / left for value, n in counts.items()}


def exclusions_to_reach(counts: ArrayLike, threshold: float) -> NDArray[np.int64]:
    """The least number of values that an attacker must rule out to hold one with at least a given chance.

    The best attack keeps one value and rules out the most frequent of the others. Of all values the most frequent
    one is the quickest to become certain: to keep any other it must be ruled out first.

    Args:
        counts: Shape (c, m): rows of each sensitive value in each class.
        threshold: The chance in (0, 1] that is too much.

    Returns:
        Shape (c,): 0 where the class gives the chance away without any knowledge. At most the number of the class's
        values less one, which makes the last one certain.

    Raises:
        ConfigurationError: The threshold is outside (0, 1], or a class is empty.
    """
    if not 0 < threshold <= 1:
        raise ConfigurationError(f"A chance of disclosure lies above 0 and is at most 1, not {threshold}.")
    rows = -np.sort(-np.asarray(counts, dtype=np.int64), axis=1)
    if (rows.sum(axis=1) < 1).any():
        raise ConfigurationError("A class without rows discloses nothing and has no risk.")
    # Keeping the most frequent value a_0 and ruling out a_1 … a_x leaves a_0 + a_{x+1} + …. Keeping a_1 instead costs
    # a_0 among the exclusions and leaves as much beside a smaller value.
    rest = rows[:, :1] + np.concatenate(
        [np.cumsum(rows[:, :0:-1], axis=1)[:, ::-1], np.zeros((rows.shape[0], 1), np.int64)], axis=1
    )
    share = Fraction(str(threshold))
    reached = rows[:, :1] * share.denominator >= share.numerator * rest
    fewest: NDArray[np.int64] = reached.argmax(axis=1)
    return fewest


@dataclass(frozen=True)
class AttributeDisclosure:
    """What classes give away about one sensitive column.

    Attributes:
        highest: Largest share of one value in a class.
        average: Mean over rows of their class's largest share.
        homogeneous_classes: Classes of a single value: knowing the class is knowing the value.
        homogeneous_rows: Share of rows in such classes.
    """

    highest: float
    average: float
    homogeneous_classes: int
    homogeneous_rows: float


def attribute_disclosure(counts: ArrayLike) -> AttributeDisclosure:
    """Homogeneity of classes.

    Args:
        counts: Shape (c, m): rows of each sensitive value in each class.

    Raises:
        ConfigurationError: There is no class, or an empty one.
    """
    rows = np.asarray(counts, dtype=np.int64)
    sizes = rows.sum(axis=1)
    if sizes.size == 0 or (sizes < 1).any():
        raise ConfigurationError("Disclosure is a share of rows: every class has one at least, and there is a class.")
    largest = rows.max(axis=1)
    alone = largest == sizes
    n = int(sizes.sum())
    return AttributeDisclosure(
        highest=float((largest / sizes).max()),
        average=int(largest.sum()) / n,
        homogeneous_classes=int(alone.sum()),
        homogeneous_rows=int(sizes[alone].sum()) / n,
    )
