"""Re-identification from a few known attributes of a long record (Aggarwal, ch. 20, exercises 14 to 16).

Shopping baskets, ratings and diagnoses have no small quasi-identifier: who knows B of a person's entries, any B,
may find the whole record (Narayanan and Shmatikov 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError


def coincidence(n: int, b: int, values: int = 2) -> float:
    """The chance that at least one of n others agrees with a target in B attributes (exact).

    Each attribute takes each of R values with probability 1/R, independently: 1 − (1 − R^−B)^n, at most n/R^B.

    Args:
        n: Other people.
        b: Attributes B that are known of the target.
        values: Values R of each attribute: 2 for bought or not, more for ratings.

    Raises:
        ConfigurationError: A number is too small.
    """
    if n < 0 or b < 0 or values < 2:
        raise ConfigurationError("Coincidence needs n ≥ 0 others, B ≥ 0 attributes and R ≥ 2 values of each.")
    agree = float(values) ** -b
    return 1.0 if agree == 1.0 and n > 0 else -math.expm1(n * math.log1p(-agree)) if n else 0.0


def coincidence_bound(n: int, b: int, values: int = 2) -> float:
    """The bound n/R^B on `coincidence` that the exercises ask for; above 1 it says nothing.

    Raises:
        ConfigurationError: A number is too small.
    """
    coincidence(n, b, values)  # refuses what makes no sense
    return n * float(values) ** -b


def attributes_to_identify(n: int, values: int = 2, chance: float = 0.01) -> int:
    """The least B for which n/R^B is at most `chance`: so many known attributes almost surely single a person out.

    Raises:
        ConfigurationError: A number is too small, or the chance is outside (0, 1].
    """
    if not 0 < chance <= 1 or n < 1:
        raise ConfigurationError("The chance lies above 0 and is at most 1, and there is one other person at least.")
    b = 0
    while coincidence_bound(n, b, values) > chance:
        b += 1
    return b


@dataclass(frozen=True)
class Reidentification:
    """What an attacker achieves who knows B attributes of each target.

    Attributes:
        targets: Shape (t,): the rows that were attacked.
        candidates: Shape (t,): rows that agree with the target in what is known, the target's own among them.
        unique: Share of targets with one candidate: their whole record is disclosed.
        expected: Mean of 1/candidates: the share that guessing among the candidates gets right.
    """

    targets: NDArray[np.int64]
    candidates: NDArray[np.int64]
    unique: float
    expected: float


def reidentify(
    records: ArrayLike,
    known: int,
    rng: Randomness,
    *,
    targets: int = 1000,
    knowledge: Literal["any", "present"] = "any",
) -> Reidentification:
    """Attacks records by B attributes of each target, drawn at random.

    Args:
        records: Shape (n, m): coded attributes, 0 for one that is absent (not bought, not rated).
        known: Attributes B that the attacker knows of a target. A target that has fewer is known wholly.
        rng: Draws targets and attributes.
        targets: How many different rows are attacked, at most n.
        knowledge: "any": attributes are drawn among all, and their absence is knowledge too; "present": among those
            that the target has (not 0), as somebody knows who saw a few purchases.

    Raises:
        ConfigurationError: There are no records, or a number is too small.
    """
    codes = np.asarray(records)
    if codes.ndim != 2 or codes.size == 0:
        raise ConfigurationError(f"Records are rows of attributes; there are none in an array of shape {codes.shape}.")
    if known < 0 or targets < 1:
        raise ConfigurationError("The attacker knows B ≥ 0 attributes of one target at least.")
    n, m = codes.shape
    attacked = rng.permutation(n)[: min(targets, n)]
    columns = np.ascontiguousarray(codes.T)  # an attribute's values of all rows lie side by side
    candidates = np.empty(len(attacked), np.int64)
    for place, target in enumerate(attacked):
        choice = np.flatnonzero(codes[target]) if knowledge == "present" else np.arange(m)
        seen = choice[rng.permutation(len(choice))[:known]]
        rows = np.arange(n)
        for attribute in seen:
            rows = rows[columns[attribute, rows] == codes[target, attribute]]
            if len(rows) == 1:
                break
        candidates[place] = len(rows)
    return Reidentification(attacked, candidates, float((candidates == 1).mean()), float((1 / candidates).mean()))
