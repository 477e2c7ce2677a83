"""Association rules X → Y from estimated frequencies of itemsets, with what noise leaves of their confidence.

The confidence of X → Y, the share of the sets with X that have Y too, is a ratio of two estimates a = f(X ∪ Y) and
b = f(X). Its interval is Fieller's: all ratios ρ for which a − ρ·b is not significantly different from 0,

    (a − ρ·b)² ≤ z²·(Var a − 2·ρ·Cov(a, b) + ρ²·Var b)

which, unlike the delta method's, holds however noisy b is. It is bounded if and only if b is significantly different
from 0, which is when a rule is stated at all. Intervals speak of one rule; of many rules that were searched for, some
intervals miss.

Source: Agrawal, Imieliński and Swami, SIGMOD 1993 (rules); Fieller, "Some Problems in Interval Estimation", Journal of
the Royal Statistical Society B 16(2), 1954, section 2 (ratios).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import NormalDist

from ldp.sets.itemset_candidates import Itemset
from ldp.sets.plan import Supports
from link.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class EstimatedRule:
    """X → Y.

    Attributes:
        antecedent: X: numbers of items, ascending.
        consequent: Y, without items of X.
        support: The estimated share of sets with both.
        support_deviation: Its standard deviation.
        confidence: The estimated share of sets with Y among those with X, cut to 0 … 1.
        confidence_low: Lower end of its interval, cut likewise.
        confidence_high: Upper end.
    """

    antecedent: Itemset
    consequent: Itemset
    support: float
    support_deviation: float
    confidence: float
    confidence_low: float
    confidence_high: float


def estimated_rules(supports: Supports, min_confidence: float = 0.0, interval: float = 0.95) -> list[EstimatedRule]:
    """The rules of all itemsets and their subsets whose frequencies were estimated, the surest first.

    Args:
        supports: Itemsets with single items, and covariances, as `ldp.sets.svsm` finds them.
        min_confidence: The least estimated confidence.
        interval: The probability with which a rule's interval covers its confidence.

    Returns:
        Rules whose antecedent's frequency differs significantly from 0 at that probability.

    Raises:
        ConfigurationError: The interval's probability is not strictly between 0 and 1.
    """
    if not 0 < interval < 1:
        raise ConfigurationError(f"an interval's probability lies between 0 and 1, not at {interval}")
    z = NormalDist().inv_cdf((1 + interval) / 2)
    places = {itemset: at for at, itemset in enumerate(supports.itemsets)}
    frequencies, covariances = supports.frequencies.tolist(), supports.covariances
    found = []
    for itemset, whole in places.items():
        for antecedent in (part for size in range(1, len(itemset)) for part in combinations(itemset, size)):
            base = places.get(antecedent)
            if base is None:
                continue
            ends = fieller(
                frequencies[whole],
                frequencies[base],
                float(covariances[whole, whole]),
                float(covariances[base, base]),
                float(covariances[whole, base]),
                z,
            )
            confidence = _share(frequencies[whole] / frequencies[base]) if ends is not None else 0.0
            if ends is None or confidence < min_confidence:
                continue
            consequent = tuple(item for item in itemset if item not in antecedent)
            deviation = sqrt(float(covariances[whole, whole]))
            found.append(
                EstimatedRule(
                    antecedent, consequent, frequencies[whole], deviation, confidence, _share(ends[0]), _share(ends[1])
                )
            )
    return sorted(found, key=lambda rule: (-rule.confidence_low, -rule.confidence, rule.antecedent, rule.consequent))


def fieller(
    above: float, below: float, variance_above: float, variance_below: float, covariance: float, z: float
) -> tuple[float, float] | None:
    """The ends of Fieller's interval of a ratio of two normal estimates; None if the one below is not above 0.

    Args:
        above: a.
        below: b.
        variance_above: Var a.
        variance_below: Var b.
        covariance: Cov(a, b).
        z: How many standard deviations are a significant difference from 0.
    """
    square = below**2 - z**2 * variance_below
    if below <= 0 or square <= 0:
        return None
    middle = above * below - z**2 * covariance
    root = sqrt(max(middle**2 - square * (above**2 - z**2 * variance_above), 0.0))
    return (middle - root) / square, (middle + root) / square


def _share(ratio: float) -> float:
    return min(max(ratio, 0.0), 1.0)
