"""From noisy counts and perturbed answers to frequencies over all parties' records.

Of trusted parties' records and of the others' there are independent estimates, f_O and f_C, with variances V_O and V_C.
Were both kinds of records drawn from one population, the best linear estimate would weigh each by the other's variance,
as BLENDER does. But parties differ. So the true frequencies are taken to differ by a random amount of variance τ²; the
frequency over all records is s·(that of trusted parties) + (1 − s)·(that of the others), s the share of records at
trusted parties; and a·f_O + (1 − a)·f_C misses it by a mean square of

    a²·V_O + (1 − a)²·V_C + (a − s)²·τ²,    which is least at    a = (V_C + s·τ²) / (V_O + V_C + τ²).

With τ² = 0 that is BLENDER's weight, and with a large τ² it is s, which needs no assumption. τ² = θ·f(1 − f), where one
θ for all items is found from how much more the two estimates differ than V_O + V_C let expect. Noise may hide that they
differ at all; so what the estimate may be off by is given with an upper limit of θ, which holds in 19 of 20 cases. And
parties may differ in some items more than in others, by as much as θ does not foresee: where the two estimates of an
item differ by more than that, their difference takes the place of τ.

Sources: Avent et al., "BLENDER", USENIX Security 2017, on the blend; DerSimonian and Laird, "Meta-Analysis in Clinical
Trials", Controlled Clinical Trials 7(3), 1986, on the variance between groups by the method of moments.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ldp.bias_aware import ONE_SIDED
from ldp.blending.curator import Frequencies
from ldp.oracles.direct_encoding import DirectEncoding

Counts = NDArray[np.int64]


def from_answers(yes: Counts, of: Counts, oracle: DirectEncoding) -> Frequencies:
    """Unbiased frequencies in the population from perturbed answers, and unbiased estimates of their variances.

    Args:
        yes: Shape (d,): how many answers say yes.
        of: Shape (d,): of how many, at least 2.
        oracle: The randomised response.
    """
    shares, gap = yes / of, float(oracle.p - oracle.q)
    return Frequencies((shares - float(oracle.q)) / gap, shares * (1 - shares) / gap**2 / (of - 1))


def blended(trusted: Frequencies, others: Frequencies, share: float) -> Frequencies:
    """Frequencies over all records, and by how much they may be off, in the mean square.

    Args:
        trusted: Estimates of the same d items at trusted parties.
        others: At the others.
        share: s, of all records those at trusted parties.
    """
    sum_of_both = trusted.variances + others.variances
    pooled = np.clip(share * trusted.frequencies + (1 - share) * others.frequencies, 0, 1)
    spread = pooled * (1 - pooled)
    squares = (trusted.frequencies - others.frequencies) ** 2
    excess = float(np.sum(squares - sum_of_both))
    scale = spread / max(float(np.sum(spread)), np.finfo(float).tiny)
    between = max(excess, 0.0) * scale
    limit = most_between(excess, float(sum_of_both @ sum_of_both), float(scale @ sum_of_both)) * scale
    most = np.maximum(limit, squares)
    weight = (others.variances + share * between) / (sum_of_both + between)
    return Frequencies(
        weight * trusted.frequencies + (1 - weight) * others.frequencies,
        weight**2 * trusted.variances + (1 - weight) ** 2 * others.variances + (weight - share) ** 2 * most,
    )


def most_between(excess: float, squares: float, mixed: float) -> float:
    """The most that the sum of squared differences may be: what noise hardly makes so small an excess of.

    It is the largest t with t − z·√(2·Σv² + 4·t·Σwv) ≤ the excess, since noise of variance v in a difference √(w·t)
    gives its square the variance 2v² + 4·w·t·v.
    """
    half = excess + 2 * ONE_SIDED**2 * mixed
    below_root = half**2 - excess**2 + 2 * ONE_SIDED**2 * squares
    return max(half + math.sqrt(below_root), 0.0) if below_root > 0 else 0.0
