"""Measures of a rule A => C, each from the three counts of A and C together, of A and of C among N transactions.

P(A) is the share of transactions that hold all items of A. Where a formula divides by zero the convention is stated
in the measure's docstring. Surveys: Tan, Kumar & Srivastava 2004, "Selecting the right objective measure for
association analysis"; Hahsler 2015, "A probabilistic comparison of commonly used interest measures".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class RuleCounts:
    """Counts of rules.

    Attributes:
        both: Transactions that hold A and C, at least 1.
        antecedent: Transactions that hold A.
        consequent: Transactions that hold C.
        n_rows: All transactions.
    """

    both: NDArray[np.int64]
    antecedent: NDArray[np.int64]
    consequent: NDArray[np.int64]
    n_rows: int

    @property
    def support(self) -> Floats:
        """P(A and C)."""
        return _quotient(self.both, self.n_rows)


def confidence(counts: RuleCounts) -> Floats:
    """P(C | A); Agrawal, Imielinski & Swami 1993."""
    return _quotient(counts.both, counts.antecedent)


def coverage(counts: RuleCounts) -> Floats:
    """P(A), the share of transactions to which the rule applies."""
    return _quotient(counts.antecedent, counts.n_rows)


def lift(counts: RuleCounts) -> Floats:
    """P(A and C) / (P(A) P(C)); Brin et al. 1997 (there "interest"). 1 means independence."""
    return _quotient(counts.both * float(counts.n_rows), counts.antecedent * counts.consequent.astype(np.float64))


def leverage(counts: RuleCounts) -> Floats:
    """P(A and C) - P(A) P(C); Piatetsky-Shapiro 1991."""
    return _quotient(_dependence(counts), float(counts.n_rows) ** 2)


def conviction(counts: RuleCounts) -> Floats:
    """P(A) P(not C) / P(A and not C); Brin et al. 1997. Infinite for a rule without exception."""
    exceptions = (counts.antecedent - counts.both) * float(counts.n_rows)
    expected = counts.antecedent * (counts.n_rows - counts.consequent).astype(np.float64)
    never = np.full(len(exceptions), np.inf)
    factor: Floats = np.divide(expected, exceptions, out=never, where=exceptions > 0)
    return factor


def jaccard(counts: RuleCounts) -> Floats:
    """P(A and C) / P(A or C); Jaccard 1901."""
    return _quotient(counts.both, counts.antecedent + counts.consequent - counts.both)


def kulczynski(counts: RuleCounts) -> Floats:
    """(P(C | A) + P(A | C)) / 2; Kulczynski 1927, as in Wu, Chen & Han 2010."""
    forward = _quotient(counts.both, counts.antecedent)
    return _quotient(forward + _quotient(counts.both, counts.consequent), 2)


def cosine(counts: RuleCounts) -> Floats:
    """P(A and C) / sqrt(P(A) P(C)); Tan, Kumar & Srivastava 2004."""
    return _quotient(counts.both, np.sqrt(counts.antecedent) * np.sqrt(counts.consequent))


def imbalance_ratio(counts: RuleCounts) -> Floats:
    """|P(A) - P(C)| / P(A or C); Wu, Chen & Han 2010."""
    apart = np.abs(counts.antecedent - counts.consequent)
    return _quotient(apart, counts.antecedent + counts.consequent - counts.both)


def all_confidence(counts: RuleCounts) -> Floats:
    """min(P(C | A), P(A | C)), the rule seen as a pair; Omiecinski 2003."""
    return _quotient(counts.both, np.maximum(counts.antecedent, counts.consequent))


def max_confidence(counts: RuleCounts) -> Floats:
    """max(P(C | A), P(A | C)); Wu, Chen & Han 2010."""
    return _quotient(counts.both, np.minimum(counts.antecedent, counts.consequent))


def added_value(counts: RuleCounts) -> Floats:
    """P(C | A) - P(C); Sahar & Mansour 1999."""
    return _quotient(_dependence(counts), counts.antecedent * float(counts.n_rows))


def certainty(counts: RuleCounts) -> Floats:
    """Certainty factor, Berzal et al. 2002: the change from P(C) to P(C | A) as a share of the largest possible change.

    (P(C|A) - P(C)) / P(not C) where positive, (P(C|A) - P(C)) / P(C) where negative, and 0 for independence.
    """
    dependence = _dependence(counts)
    room = np.where(dependence > 0, counts.n_rows - counts.consequent, counts.consequent)
    return _share(dependence, counts.antecedent * room.astype(np.float64))


def zhang(counts: RuleCounts) -> Floats:
    """Zhang 2000: leverage / max(P(A and C) P(not A), P(A) (P(C) - P(A and C))), from -1 to 1; 0 for independence."""
    together = counts.both * (counts.n_rows - counts.antecedent).astype(np.float64)
    apart = counts.antecedent * (counts.consequent - counts.both).astype(np.float64)
    return _share(_dependence(counts), np.maximum(together, apart))


def _quotient(part: NDArray[Any], whole: NDArray[Any] | float) -> Floats:
    quotient: Floats = np.divide(part, whole)
    return quotient


def _dependence(counts: RuleCounts) -> Floats:
    """N^2 (P(A and C) - P(A) P(C)), in whole numbers so that independence gives exactly 0."""
    if counts.n_rows < 2**31:
        return (counts.both * counts.n_rows - counts.antecedent * counts.consequent).astype(np.float64)
    both, antecedent = counts.both.astype(object), counts.antecedent.astype(object)
    exact: Floats = (both * counts.n_rows - antecedent * counts.consequent.astype(object)).astype(np.float64)
    return exact


def _share(part: Floats, whole: NDArray[Any]) -> Floats:
    """Part / whole, and 0 where the part is 0 (the only case in which the whole can be)."""
    quotient: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=part != 0)
    return quotient


MEASURES: dict[str, Callable[[RuleCounts], Floats]] = {
    "confidence": confidence,
    "lift": lift,
    "leverage": leverage,
    "conviction": conviction,
    "coverage": coverage,
    "jaccard": jaccard,
    "kulczynski": kulczynski,
    "cosine": cosine,
    "imbalance_ratio": imbalance_ratio,
    "all_confidence": all_confidence,
    "max_confidence": max_confidence,
    "added_value": added_value,
    "certainty": certainty,
    "zhang": zhang,
}
