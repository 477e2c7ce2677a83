"""Streams for experiments: binary ones that move as in LDP-IDS, a categorical one that drifts, users who come and go.

The binary ones follow the experiments of Ren et al., "LDP-IDS", SIGMOD 2022, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.sampling import coin_flips
from ldp.domain import Codes
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

_FRACTION_BITS: Final = 53


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What users have at one step.

    Attributes:
        values: Shape (n,): codes of the values of the n users who are there.
        users: Shape (n,): their numbers, none twice; None for users 0 … n − 1.
    """

    values: Codes
    users: NDArray[np.int64] | None = None


# -- shares of ones ---------------------------------------------------------------------------------------------------
def linear(steps: int, rng: Randomness, *, start: float = 0.05, deviation: float = 0.0025) -> Floats:
    """p_t = p_(t−1) + N(0, deviation²), kept within 0 … 1 (the linear process, LNS); shape (steps,)."""
    moves = [NormalDist(0, deviation).inv_cdf(float(share)) for share in _uniform(steps, rng)]
    shares, share = [], start
    for move in moves:
        share = min(max(share + move, 0.0), 1.0)
        shares.append(share)
    return np.array(shares)


def sine(steps: int, *, amplitude: float = 0.05, rate: float = 0.01, level: float = 0.075) -> Floats:
    """p_t = amplitude·sin(rate·t) + level for t = 1 … steps; shape (steps,)."""
    shares: Floats = amplitude * np.sin(rate * np.arange(1, steps + 1)) + level
    return shares


def logistic(steps: int, *, limit: float = 0.25, rate: float = 0.01) -> Floats:
    """p_t = limit/(1 + e^(−rate·t)) for t = 1 … steps; shape (steps,)."""
    shares: Floats = limit / (1 + np.exp(-rate * np.arange(1, steps + 1)))
    return shares


def binary(shares: Floats, users: int, rng: Randomness) -> Iterator[Step]:
    """At step t every user has value 1 with probability `shares[t]`, drawn anew, and 0 otherwise.

    Raises:
        ConfigurationError: A share is not within 0 … 1.
    """
    probabilities = [_dyadic(float(share)) for share in shares]
    return (Step(coin_flips(each, users, rng).astype(np.int64)) for each in probabilities)


# -- categories -------------------------------------------------------------------------------------------------------
def drifting(
    d: int, users: int, steps: int, rng: Randomness, *, change: float = 0.05, drift: float = 0.1
) -> Iterator[Step]:
    """Users keep a value until they take a new one out of popularities that wander, as on sites and in shops.

    Args:
        d: Values; at first their popularity follows Zipf's law.
        users: How many.
        steps: How many.
        rng: The source of randomness.
        change: The probability with which a user takes a new value at a step.
        drift: Standard deviation of what a popularity's logarithm moves by at a step.

    Raises:
        ConfigurationError: The probability is not within 0 … 1.
    """
    changes, normal = _dyadic(change), NormalDist(0, drift)

    def walk() -> Iterator[Step]:
        popularity = -np.log(np.arange(1, d + 1, dtype=np.float64))
        values = _drawn(popularity, users, rng)
        for _ in range(steps):
            yield Step(values)
            popularity = popularity + [normal.inv_cdf(float(share)) for share in _uniform(d, rng)]
            changed = np.flatnonzero(coin_flips(changes, users, rng))
            values = values.copy()
            values[changed] = _drawn(popularity, changed.size, rng)

    return walk()


# -- users ------------------------------------------------------------------------------------------------------------
def coming_and_going(
    stream: Iterable[Step], users: int, rng: Randomness, *, leave: float = 0.02, arrive: float = 0.05
) -> Iterator[Step]:
    """A stream's users 0 … users − 1, of whom some are away at each step.

    Args:
        stream: Steps at which all users have values.
        users: How many.
        rng: The source of randomness.
        leave: The probability with which one who is there leaves before the next step.
        arrive: The probability with which one who is away comes, for the first time or again. At the start, and on
            average later, arrive/(arrive + leave) of all are there.

    Raises:
        ConfigurationError: A probability is not within 0 … 1, or both are 0.
    """
    if not leave + arrive > 0:
        raise ConfigurationError("with no chance to leave or to arrive, nobody would come and go")
    leaves, arrives, there = map(_dyadic, (leave, arrive, arrive / (arrive + leave)))

    def walk() -> Iterator[Step]:
        present = coin_flips(there, users, rng)
        for step in stream:
            yield Step(step.values[present], np.flatnonzero(present))
            going, coming = coin_flips(leaves, users, rng), coin_flips(arrives, users, rng)
            present = np.where(present, ~going, coming)

    return walk()


def _dyadic(share: float) -> Dyadic:
    if not 0 <= share <= 1:
        raise ConfigurationError(f"a probability lies within 0 and 1; {share!r} does not")
    return Dyadic.floor(Fraction(share), PRECISE_BITS)


def _uniform(size: int, rng: Randomness) -> Floats:
    """Shape (size,): strictly between 0 and 1."""
    words: Floats = ((rng.uint64(size) >> np.uint64(64 - _FRACTION_BITS)) + 0.5) / (1 << _FRACTION_BITS)
    return np.minimum(words, np.nextafter(1.0, 0.0))


def _drawn(logarithms: Floats, size: int, rng: Randomness) -> Codes:
    """Shape (size,): values with probabilities in proportion to the powers of e."""
    weights = np.cumsum(np.exp(logarithms - logarithms.max()))
    return np.searchsorted(weights / weights[-1], _uniform(size, rng), side="right").astype(np.int64)
