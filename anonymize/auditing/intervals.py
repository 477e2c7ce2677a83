"""Interval disclosure: answered sums that pin a bounded value down to a short interval, found in a log afterwards.

This cannot decide on queries: with 0 ≤ x ≤ 100 and τ = 5, a denial of x0 + x1 would say that the sum is below 5 or
above 195. So it is a check of answers that were given, for those who answer for the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from anonymize.auditing.decision import members
from link.errors import ConfigurationError, InputDataError


@dataclass(frozen=True, slots=True)
class Pinned:
    """A value that the answers confine.

    Attributes:
        record: Whose.
        low: It is not below.
        high: It is not above.
    """

    record: int
    low: float
    high: float


def pinned(
    queries: Sequence[ArrayLike], answers: Sequence[float], n: int, bounds: tuple[float, float], width: float
) -> list[Pinned]:
    """The values that answered sums confine to intervals shorter than some width.

    Args:
        queries: The numbers of the records of each.
        answers: Their sums.
        n: How many records there are.
        bounds: What no value is below or above.
        width: τ.

    Raises:
        ConfigurationError: The bounds or the width are none.
        InputDataError: No values within the bounds have these sums.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    low, high = bounds
    if not (low < high and width > 0):
        raise ConfigurationError(f"bounds {low:g} and {high:g} and a width of {width:g} say nothing about a value")
    if len(queries) != len(answers):
        raise InputDataError(f"{len(queries)} queries cannot have {len(answers)} answers")
    sets = [members(query, n) for query in queries]
    if not sets:
        return []
    asked = np.unique(np.concatenate(sets))
    place = {int(record): at for at, record in enumerate(asked)}
    starts = np.cumsum([0, *(len(each) for each in sets)])
    columns = np.array([place[int(record)] for each in sets for record in each])
    matrix = csr_array((np.ones(len(columns)), columns, starts), shape=(len(sets), len(asked)))
    found = []
    for at, record in enumerate(asked.tolist()):
        ends = []
        for sign in (1.0, -1.0):
            cost = np.zeros(len(asked))
            cost[at] = sign
            solved = linprog(cost, A_eq=matrix, b_eq=np.asarray(answers, float), bounds=(low, high), method="highs")
            if solved.status != 0:
                raise InputDataError(f"no values between {low:g} and {high:g} have these sums; check the answers")
            ends.append(sign * float(solved.fun))
        if ends[1] - ends[0] < width:
            found.append(Pinned(record, *ends))
    return found
