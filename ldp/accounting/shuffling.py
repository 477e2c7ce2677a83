"""Amplification by shuffling: the (ε, δ) that n anonymous reports have together, if each has ε₀ on its own.

All functions here are upper bounds that are proved: what they return is guaranteed. `ldp.accounting.lower_bounds` has
what no bound can fall below, and says which published bounds are not proved.

- **Privacy blanket** (Balle, Bell, Gascón and Nissim, "The Privacy Blanket of the Shuffle Model", CRYPTO 2019, lemma
  5.3), evaluated exactly for a mechanism's own blanket:  δ(ε) ≤ E[(L_1 + … + L_M)⁺] / (γn), M ~ Bin(n, γ).
- **Clones** (Feldman, McMillan and Talwar, "Hiding Among the Clones", FOCS 2021, theorem 3.2 and its exact numerical
  form), for any mechanism: with probability e^−ε₀ a report is drawn from R(x) or R(x'), evenly. That is the sum above
  for γ = e^−ε₀ and the two ratios 2e^ε₀/(e^ε₀ + 1) and 2/(e^ε₀ + 1).

n is the number of reports in one batch that come from users who collude with nobody who sees the output; see
`ldp.accounting.batches`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq

from ldp.accounting.positive_part import log_mean_positive_part
from ldp.accounting.rounding import float_below, floats_above, floats_below
from ldp.accounting.solving import crossing
from ldp.blanket import Atom, Blanket
from ldp.budget import LARGEST_EPSILON, check_epsilon, exp_below
from ldp.mechanism import Mechanism
from link.errors import ConfigurationError

_LEAST: Final = 1e-12
_STEPS: Final = 40
_ULPS: Final = 1e-13

Local = Mechanism[Any] | float
"""A mechanism, or the ε₀ of one of which no more is known."""

Family = Callable[[float], Mechanism[Any]]
"""Makes a mechanism of a given ε₀."""


def amplified_epsilon(local: Local, n: int, delta: float) -> float:
    """The ε of n shuffled reports: the least of all bounds that are proved.

    Args:
        local: The mechanism that all users report by, or its ε₀.
        n: Reports in one batch of users who collude with nobody.
        delta: δ, the probability with which ε may be exceeded, above 0 and below 1.

    Returns:
        At most the mechanism's own ε₀, which needs no δ.

    Raises:
        ConfigurationError: n or δ is out of range.
    """
    return min(bounds(local, n, delta).values())


def bounds(local: Local, n: int, delta: float) -> dict[str, float]:
    """All proved bounds of ε by their names, those that apply: "local", "clone", "closed", "blanket".

    Args:
        local: The mechanism, or its ε₀.
        n: Reports of users who collude with nobody.
        delta: δ.

    Raises:
        ConfigurationError: n or δ is out of range.
    """
    n, delta = check_batch(n), check_delta(delta)
    alone = _epsilon_of(local)
    found = {"local": alone}
    if n == 1:
        return found
    closed = clone_closed_form(alone, n, delta)
    if closed < math.inf:
        found["closed"] = closed
    found["clone"] = ShuffledBlanket(clone(alone)).epsilon(n, delta, alone)
    blanket = local.blanket() if isinstance(local, Mechanism) else None
    if blanket is not None:
        found["blanket"] = ShuffledBlanket(blanket).epsilon(n, delta, alone)
    return found


def amplified_delta(local: Local, n: int, epsilon: float) -> float:
    """The least δ that is proved for n shuffled reports and a given ε.

    Args:
        local: The mechanism, or its ε₀.
        n: Reports of users who collude with nobody.
        epsilon: ε, not negative.

    Raises:
        ConfigurationError: n is below 1, or ε negative.
    """
    n = check_batch(n)
    if not 0 <= epsilon < math.inf:
        raise ConfigurationError(f"the epsilon of shuffled reports is a finite number from 0 on, not {epsilon!r}")
    if epsilon >= _epsilon_of(local):
        return 0.0
    return math.exp(min(0.0, *(each.log_delta(n, epsilon) for each in _proved(local))))


def largest_local_epsilon(epsilon: float, delta: float, n: int, family: Family | None = None) -> float:
    """The largest ε₀ that n users may report with so that their shuffled reports have (ε, δ): the inverse.

    Args:
        epsilon: ε of all reports together.
        delta: δ.
        n: Reports of users who collude with nobody.
        family: Makes the mechanism of an ε₀, for the blanket depends on it; by default any mechanism will do. Where its
            other parameters jump with ε₀, another and larger one may do too.

    Returns:
        From ε to 16, rounded down.

    Raises:
        ConfigurationError: n, ε or δ is out of range.
    """
    n, delta, least = check_batch(n), check_delta(delta), check_epsilon(epsilon)

    def enough(alone: float) -> bool:
        local = alone if family is None else family(alone)
        return any(each.log_delta(n, epsilon) <= math.log(delta) for each in _proved(local))

    if enough(LARGEST_EPSILON):
        return LARGEST_EPSILON
    low, high = least, LARGEST_EPSILON
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
        if high - low <= 1e-9 * high:
            break
    return low


def clone(epsilon: float) -> Blanket:
    """What any mechanism of ε₀ has: another report is drawn as the first or second input's, evenly, with e^−ε₀.

    Source: Feldman, McMillan and Talwar, FOCS 2021, theorem 3.1. The two ratios are those of the worst mechanism,
    randomised response.
    """
    weight = exp_below(-Fraction(epsilon))
    high, low = 2 / (1 + weight), 2 * weight / (1 + weight)
    half = Fraction(1, 2)
    return Blanket(weight, (Atom(half, high, low), Atom(half, low, high)))


def clone_closed_form(epsilon: float, n: int, delta: float) -> float:
    """ε of the clones' closed form, never less than the exact one; for orientation, and for n of any size.

    ln(1 + (e^ε₀ − 1)/(e^ε₀ + 1)·(8√(e^ε₀·ln(4/δ))/√n + 8e^ε₀/n)).
    Source: Feldman, McMillan and Talwar, FOCS 2021, theorem 3.1.

    Returns:
        Infinite where it does not hold: for ε₀ > ln(n / (16·ln(2/δ))).
    """
    if epsilon > math.log(n / (16 * math.log(2 / delta))):
        return math.inf
    grown = math.exp(epsilon)
    inner = 8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n
    return math.log1p(math.tanh(epsilon / 2) * inner) * (1 + _ULPS)


@lru_cache(maxsize=4096)  # the phases of a job, and all who compute what it costs, ask for the same sums
def _log_mean_positive_part(values: bytes, masses: bytes, n: int) -> float:
    return log_mean_positive_part(np.frombuffer(values), np.frombuffer(masses), n)


class ShuffledBlanket:
    """δ and ε of n shuffled reports of a mechanism with a given privacy blanket.

    Args:
        blanket: The blanket.
    """

    def __init__(self, blanket: Blanket) -> None:
        self.blanket = blanket
        gamma, atoms = blanket.weight, blanket.atoms
        self._log_weight = math.log(float_below(gamma))
        masses = [gamma * atom.probability for atom in atoms]
        self._masses = floats_above([*masses, 1 - gamma])
        pairs = [[(atom.first, atom.second) for atom in atoms], [(atom.second, atom.first) for atom in atoms]]
        law = dict(zip(pairs[0], masses, strict=True))
        if len(law) == len(atoms) and all(law.get((b, a)) == mass for (a, b), mass in law.items()):
            pairs.pop()  # both directions are the same
        self._directions = [(floats_above(a for a, _ in each), floats_below(b for _, b in each)) for each in pairs]

    def log_delta(self, n: int, epsilon: float) -> float:
        """The logarithm of δ, rounded up.

        Args:
            n: Reports.
            epsilon: ε.
        """
        grown = float_below(exp_below(epsilon))
        sums = []
        for first, second in self._directions:
            losses = np.nextafter(first - np.nextafter(grown * second, -np.inf), np.inf)
            sums.append(_log_mean_positive_part(np.append(losses, 0.0).tobytes(), self._masses.tobytes(), n))
        return max(sums) - (self._log_weight + math.log(n)) * (1 - _ULPS) if max(sums) > -math.inf else -math.inf

    def epsilon(self, n: int, delta: float, most: float) -> float:
        """The ε for which δ is enough, rounded up.

        Args:
            n: Reports.
            delta: δ.
            most: An ε that holds anyway.
        """
        target = math.log(delta)
        return crossing(lambda epsilon: self.log_delta(n, epsilon) - target, 0.0, most, self._guess(n, delta, most))

    def _guess(self, n: int, delta: float, most: float) -> float:
        """ε if the sum were normal."""
        gamma = float(self.blanket.weight)
        first, second = self._directions[0]
        masses = self._masses[:-1]

        def excess(epsilon: float) -> float:
            losses = first - math.exp(epsilon) * second
            mean = n * float(masses @ losses)
            deviation = math.sqrt(max(n * float(masses @ losses**2) - mean**2 / n, 1e-300))
            z = mean / deviation
            density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
            return deviation * (density + z * math.erfc(-z / math.sqrt(2)) / 2) - delta * gamma * n

        if excess(_LEAST) <= 0:
            return _LEAST
        return brentq(excess, _LEAST, most, rtol=1e-3) if excess(most) < 0 else most * (1 - 1e-3)


def check_batch(n: int) -> int:
    """A number of reports.

    Raises:
        ConfigurationError: It is no whole number above 0.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ConfigurationError(f"a batch has a whole number of reports from 1 on, not {n!r}")
    return int(n)


def check_delta(delta: float) -> float:
    """A δ.

    Raises:
        ConfigurationError: It does not lie above 0 and below 1.
    """
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 < delta < 1:
        raise ConfigurationError(f"delta lies above 0 and below 1, such as 1e-6; {delta!r} does not")
    return float(delta)


def _epsilon_of(local: Local) -> float:
    return local.exact_epsilon if isinstance(local, Mechanism) else check_epsilon(local)


def _proved(local: Local) -> list[ShuffledBlanket]:
    found = [clone(_epsilon_of(local))]
    blanket = local.blanket() if isinstance(local, Mechanism) else None
    return [ShuffledBlanket(each) for each in found + ([] if blanket is None else [blanket])]
