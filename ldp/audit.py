"""Audits a mechanism: a lower bound on its ε that what it really sends proves, without trust in its formulas.

An attacker guesses from a report which of two inputs it came from. If it says "the first" for a share t of the first
input's reports and for a share f of the second's, then every ε that the mechanism satisfies is at least ln(t / f). Both
are estimated from many reports, t by its lower and f by its upper Clopper–Pearson bound, so the result exceeds the true
ε with a probability of at most α. A result above the ε that is claimed refutes the claim; one below proves nothing, but
is close to ε where a mechanism is tight and the attacker good.

Source: Arcolezi and Gambs, "Revealing the True Cost of Locally Differentially Private Protocols: An Auditing
Perspective", PETS 2024, section 3. Its attackers pick one value that the report supports; the ones here look at both
values, "supports the first and not the second", which loses nothing: under all oracles here these reports have the
largest likelihood ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.sampling import Bits
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Mechanism
from ldp.reports import Reports
from link.errors import ConfigurationError

Distinguisher = Callable[[Reports], Bits]
"""For each report, whether the attacker says that it came from the first input."""

_BATCH_BYTES: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        epsilon: The lower bound on ε; 0 where nothing was distinguished.
        claimed: The mechanism's own `exact_epsilon`.
        true_rate: How many reports of the first input were recognised, as a share.
        false_rate: How many reports of the second input were taken for the first's, as a share.
        trials: Reports of each input.
        alpha: The probability with which `epsilon` may exceed the true ε.
    """

    epsilon: float
    claimed: float
    true_rate: float
    false_rate: float
    trials: int
    alpha: float

    @property
    def refuted(self) -> bool:
        """Whether the mechanism spends more than it claims, at confidence 1 − α."""
        return self.epsilon > self.claimed


def audit(
    mechanism: Mechanism[Any],
    first: object,
    second: object,
    trials: int = 100_000,
    alpha: float = 0.01,
    rng: Randomness | None = None,
    distinguisher: Distinguisher | None = None,
) -> Audit:
    """Attacks reports of two inputs.

    Args:
        mechanism: The mechanism.
        first: The input that the attacker recognises: a value, or a record where the mechanism takes records.
        second: The other input.
        trials: How many reports of each input are drawn.
        alpha: The probability with which the result may exceed the true ε.
        rng: The source of randomness.
        distinguisher: The attacker; by default `by_support` for frequency oracles. It must not be chosen by looking at
            the same reports.

    Raises:
        ConfigurationError: There is no trial, α is no probability, or no attacker on this mechanism is known.
        InputDataError: An input is outside the domain.
    """
    if trials < 1:
        raise ConfigurationError(f"an audit needs at least one trial, not {trials}")
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies between 0 and 1, not at {alpha:g}")
    rng = Randomness.from_os() if rng is None else rng
    attacker = distinguisher or default_distinguisher(mechanism, first, second)
    true, false = (_recognised(mechanism, each, trials, attacker, rng) for each in (first, second))
    return Audit(
        epsilon=epsilon_bound(true, false, trials, alpha),
        claimed=mechanism.exact_epsilon,
        true_rate=true / trials,
        false_rate=false / trials,
        trials=trials,
        alpha=alpha,
    )


def epsilon_bound(true: int, false: int, trials: int, alpha: float) -> float:
    """Ln of the least ratio of two probabilities that Clopper–Pearson bounds, each at α/2, allow; not below 0.

    Args:
        true: Successes under the first input.
        false: Successes under the second one.
        trials: Trials of each.
        alpha: The probability of an error.
    """
    least = float(stats.beta.ppf(alpha / 2, true, trials - true + 1)) if true else 0.0
    most = float(stats.beta.isf(alpha / 2, false + 1, trials - false)) if false < trials else 1.0
    return max(math.log(least / most), 0.0) if least else 0.0


def default_distinguisher(mechanism: Mechanism[Any], first: object, second: object) -> Distinguisher:
    """The attacker by what a report supports.

    Raises:
        ConfigurationError: The mechanism is no frequency oracle whose reports support values.
        InputDataError: An input is outside the domain.
    """
    if not isinstance(mechanism, FrequencyOracle):
        raise ConfigurationError(
            f"no attacker on {mechanism.name} is known; give one as `distinguisher`, by_likelihood for instance"
        )
    one, two = mechanism.domain.codes(np.array([first, second]))
    return by_support(mechanism, int(one), int(two))


def by_support(oracle: FrequencyOracle, first: int, second: int) -> Distinguisher:
    """Says "the first" where a report supports the first value and not the second.

    Args:
        oracle: The oracle.
        first: Number of a value.
        second: Number of another one.
    """

    def guess(reports: Reports) -> Bits:
        supporting = oracle.supports(reports, np.array([first, second]))
        found: Bits = supporting[:, 0] & ~supporting[:, 1]
        return found

    return guess


def by_likelihood(mechanism: Mechanism[Any], first: int, second: int) -> Distinguisher:
    """Says "the first" for the outputs with the largest ratio of likelihoods, by the enumerated channel.

    Args:
        mechanism: A mechanism with a `channel`.
        first: Row of the first input.
        second: Row of the second one.

    Raises:
        NotImplementedError: The mechanism's outputs are not enumerated.
    """
    channel = mechanism.channel()
    ratios = np.array(
        [
            math.inf if q == 0 < p else float(p / q) if q else 0.0
            for p, q in zip(channel[first], channel[second], strict=True)
        ]
    )
    # Rounding leaves ratios that ought to be equal a little apart.
    likelier = ratios >= ratios.max() * (1 - 1e-6)
    return partial(_outcome_is, mechanism, likelier)


def _outcome_is(mechanism: Mechanism[Any], likelier: Bits, reports: Reports) -> Bits:
    found: Bits = likelier[mechanism.outcomes(reports)]
    return found


def _recognised(mechanism: Mechanism[Any], value: object, trials: int, attacker: Distinguisher, rng: Randomness) -> int:
    """How many of `trials` reports of a value the attacker takes for the first input's."""
    step = max(1, _BATCH_BYTES // max(1, mechanism.report_bytes))
    step, total = min(step, trials), 0
    batch = np.repeat(np.asarray(value)[None], step, axis=0)
    for start in range(0, trials, step):
        total += int(attacker(mechanism.privatise(batch[: trials - start], rng)).sum())
    return total
