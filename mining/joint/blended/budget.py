"""The noise of trusted parties, and what a record spends: pure, from public parameters alone.

Numbers of records are public, so neighbouring data differ in one record that is replaced by another. Each record of a
trusted party lies in one half, whatever it holds, so that only the half's own cost counts.

    first half    a record counts to at most M items, so that two records move at most 2M counts, by 1 each: Δ₂ = √(2M).
                  Gaussian noise for (ε, δ/2). An item that only one of the two records has is named with probability at
                  most δ' for all M of them together; that adds δ' + e^ε·δ' for both records, which is δ/2.
    second half   a record counts to each item of the head list that it holds. Two records move each count by 1 at most:
                  Δ₂ = √d for d items. Gaussian noise for (ε, δ).

A record of another party answers one question, yes or no, by randomised response with ε, whatever it holds: so does the
other record in its place.

Sources: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020; Gopi et al.,
"Differentially Private Set Union", ICML 2020; Warner, "Randomized Response", JASA 60, 1965.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

from ldp.accounting.central_noise import partition_threshold, sigma_for
from ldp.accounting.rounding import float_below
from ldp.budget import exp_below
from mining.joint.blended.parameters import Blending
from mining.joint.spent import Spent

MOST: Final = 15
"""To how many items a record counts at most where its party names items."""


@dataclass(frozen=True, slots=True)
class Naming:
    """By which items a trusted party names.

    Attributes:
        most: M.
        variance: The parameter s² of the discrete Gaussian in each count.
        threshold: From which noisy count on an item is named.
    """

    most: int
    variance: Fraction
    threshold: int


def naming(task: Blending) -> Naming:
    """How a trusted party names the items that are frequent in its first half."""
    delta = Fraction(task.delta) / 2
    variance = _variance(task, delta, 2 * MOST)
    alone = float_below(delta / (1 + 1 / exp_below(-Fraction(task.epsilon))))
    # One more than for continuous noise, which the discrete reaches no more often.
    threshold = 1 + partition_threshold(math.sqrt(variance), MOST, alone)
    return Naming(MOST, variance, math.ceil(threshold))


def counting(task: Blending, items: int) -> Fraction:
    """The parameter s² of the discrete Gaussian in each count of a trusted party's second half.

    Args:
        task: The public parameters.
        items: d, from 1 on.
    """
    return _variance(task, Fraction(task.delta), items)


def spent(task: Blending) -> Spent:
    """What a run costs each record: all that the job allows."""
    epsilon, bound = float(task.epsilon), "randomised response; concentrated privacy of trusted parties' counts"
    return Spent("blended", epsilon, epsilon, float(task.delta), None, bound)


def _variance(task: Blending, delta: Fraction, moved: int) -> Fraction:
    """For so many counts that may change by 1 each."""
    return _parameter(float_below(Fraction(task.epsilon)), float_below(delta), moved)


@cache
def _parameter(epsilon: float, delta: float, moved: int) -> Fraction:
    (noise,) = sigma_for(epsilon, delta, (1.0,), (moved,))
    return noise.parameter
