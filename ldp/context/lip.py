"""Local information privacy (LIP): reports that change what an adversary with a known prior believes by e^ε at most.

ε-LIP asks that e^−ε ≤ Pr[y | x] / Pr[y] ≤ e^ε for every value x and output y, given the prior distribution P of values.
ε-LDP implies ε-LIP, which implies 2ε-LDP; so a mechanism that knows the prior may be more accurate at the same ε. It
protects only against adversaries who know no more than the prior: one who knows that a user has one of two values may
learn up to e^(2ε). Take LDP where you are not sure.

Mechanisms: `information_private` here, for oracles of the registry, and the responses of `ldp.context.prior_response`.
The prior is a parameter that clients and servers share, and is rounded to multiples of 2^-64. Its rarest value decides.
Source: Jiang, Li and Tandon, "Context-Aware Local Information Privacy", IEEE Transactions on Information Forensics and
Security 16, 2021. The budgets of `information_private` are derived here (see `ldp_budget` and `direct_budget`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from ldp.arithmetic.dyadic import PRECISE_BITS
from ldp.budget import LARGEST_EPSILON, check_epsilon, exp_below, log_above
from ldp.domain import Domain, DomainLike
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Channel
from ldp.registry import oracle
from link.errors import ConfigurationError

PRIOR_WORDS: Final = 1 << PRECISE_BITS
"""A prior's probabilities are whole multiples of one over this."""

_PRIOR_ERROR: Final = 1e-6  # by which a prior's sum may differ from 1


# -- the guarantee ----------------------------------------------------------------------------------------------------
def checked_prior(prior: Sequence[float], size: int) -> tuple[Fraction, ...]:
    """A prior as exact multiples of 2^-64 that add up to 1.

    Args:
        prior: The probability of each value, in the order of the domain.
        size: How many values there are.

    Raises:
        ConfigurationError: It has another length, does not add up to 1, or a value is impossible under it.
    """
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (size,):
        raise ConfigurationError(f"each of the {size} values needs a prior probability; {shares.size} are given")
    if not np.isfinite(shares).all() or abs(shares.sum() - 1) > _PRIOR_ERROR:
        raise ConfigurationError(f"prior probabilities add up to 1, not to {shares.sum():g}")
    words = [int(each) for each in shares / shares.sum() * PRIOR_WORDS]
    if min(words) < 1:
        raise ConfigurationError("a value has prior probability 0; leave values out of the domain that cannot occur")
    words[int(shares.argmax())] += PRIOR_WORDS - sum(words)
    return tuple(Fraction(each, PRIOR_WORDS) for each in words)


def worst_information_ratio(channel: Channel, prior: Sequence[Fraction]) -> Fraction | None:
    """The largest of Pr[y | x] / Pr[y] and its inverse, exact; None if an output rules a value out.

    Args:
        channel: Row x, column y: the probability that input x yields output y.
        prior: The probability of each input.
    """
    worst = Fraction(1)
    for column in zip(*channel, strict=True):
        marginal = sum((p * each for p, each in zip(prior, column, strict=True)), Fraction(0))
        if marginal == 0:
            continue
        if min(column) == 0:
            return None
        worst = max(worst, max(column) / marginal, marginal / min(column))
    return worst


def information_epsilon(channel: Channel, prior: Sequence[Fraction]) -> float:
    """The least ε for which the channel is ε-LIP, rounded up; infinite if an output rules a value out."""
    worst = worst_information_ratio(channel, prior)
    return math.inf if worst is None else log_above(worst)


def satisfies_information_privacy(channel: Channel, prior: Sequence[Fraction], epsilon: float) -> bool:
    """Whether rows are distributions and no ratio to the marginal exceeds e^ε, decided in exact arithmetic."""
    if any(sum(row) != 1 or min(row) < 0 for row in channel):
        return False
    worst = worst_information_ratio(channel, prior)
    return worst is not None and worst <= exp_below(epsilon)


# -- oracles of the registry ------------------------------------------------------------------------------------------
def information_private(
    name: str, domain: DomainLike, epsilon: float, prior: Sequence[float], **parameters: float | None
) -> FrequencyOracle:
    """An oracle with the largest LDP budget under which it is sure to be ε-LIP; its `epsilon` is that budget.

    Args:
        name: One of `ldp.registry.ORACLES`.
        domain: The domain, its size, or the texts of its values.
        epsilon: The LIP budget ε.
        prior: The probability of each value.
        **parameters: Further parameters of that oracle.

    Raises:
        ConfigurationError: There is no such oracle, or a parameter is wrong.
    """
    known = Domain.of(domain)
    shares = checked_prior(prior, known.size)
    budget = (direct_budget if name == "grr" else ldp_budget)(epsilon, shares)
    return oracle(name, known, budget, **parameters)


def ldp_budget(epsilon: float, prior: Sequence[Fraction]) -> float:
    """The largest ε' such that every ε'-LDP mechanism is ε-LIP: e^ε' = (e^ε − P) / (1 − P) for the rarest value's P.

    Under ε'-LDP Pr[y] = Σ_z P_z·Pr[y | z] lies between Pr[y | x]·(P_x + (1 − P_x)·e^−ε') and
    Pr[y | x]·(P_x + (1 − P_x)·e^ε'). The second bound is the worse one, most of all for the least P_x. Unary encoding
    and local hashing reach it, with an output that supports all values but the rarest; for them ε' is exact.

    Args:
        epsilon: The LIP budget ε.
        prior: The probability of each value, above 0.
    """
    least = min(prior)
    return _log_below((exp_below(check_epsilon(epsilon)) - least) / (1 - least))


def direct_budget(epsilon: float, prior: Sequence[Fraction]) -> float:
    """The largest ε' under which direct encoding is ε-LIP.

    A report of y has Pr[y] = q·(1 + (e^ε' − 1)·P_y). So y itself is at most e^ε' / (1 + (e^ε' − 1)·P_y) times likelier
    than on average, most for the rarest y, and another value 1 + (e^ε' − 1)·P_y times less likely, most for the most
    frequent y.

    Args:
        epsilon: The LIP budget ε.
        prior: The probability of each value, above 0.
    """
    grown, least, most = exp_below(check_epsilon(epsilon)), min(prior), max(prior)
    allowed = 1 + (grown - 1) / most
    if grown * least < 1:
        allowed = min(allowed, grown * (1 - least) / (1 - grown * least))
    return _log_below(allowed)


def _log_below(ratio: Fraction) -> float:
    """A budget under which no ratio exceeds the given one: ln(ratio), or the largest budget that mechanisms take."""
    if ratio >= exp_below(LARGEST_EPSILON):
        return LARGEST_EPSILON
    budget = log_above(ratio)
    while exp_below(budget) > ratio:
        budget = math.nextafter(budget, 0)
    return budget
