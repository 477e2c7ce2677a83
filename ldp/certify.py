"""Certifies a channel: no output may be more than e^ε times likelier from one input than from another."""

from __future__ import annotations

import math
from fractions import Fraction

from ldp.budget import exp_below, log_above
from ldp.mechanism import Channel


def worst_ratio(channel: Channel) -> Fraction | None:
    """The largest ratio of two inputs' probabilities of one output, exact; None if one of them is 0 and not the other.

    Args:
        channel: Row x, column y: the probability that input x yields output y.
    """
    worst = Fraction(1)
    for column in zip(*channel, strict=True):
        least, most = min(column), max(column)
        if least == 0:
            if most > 0:
                return None
        elif most > worst * least:
            worst = most / least
    return worst


def spent_epsilon(channel: Channel) -> float:
    """The least ε that the channel satisfies, rounded up; infinite if some output gives an input away."""
    worst = worst_ratio(channel)
    return math.inf if worst is None else log_above(worst)


def satisfies(channel: Channel, epsilon: float) -> bool:
    """Whether rows are distributions and no ratio exceeds e^ε, decided in exact arithmetic."""
    if any(sum(row) != 1 or min(row) < 0 for row in channel):
        return False
    worst = worst_ratio(channel)
    return worst is not None and worst <= exp_below(epsilon)
