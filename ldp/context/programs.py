"""The programs that find the probabilities of input-discriminative unary encoding.

A level i of m_i values with budget ε_i has a_i and b_i, the probabilities of a 1 at the user's own value and elsewhere.
With u_i = ln(a_i / b_i), what a 1 says, and w_i = ln((1 − b_i) / (1 − a_i)), what a 0 says, the guarantee is
u_i + w_j ≤ r_ij = min(ε_i, ε_j) for all levels i ≠ j, and for i = j if the level has two values or more. In these
coordinates, with A = 1/(e^u − 1) and B = 1/(e^w − 1), the variance per user is A(1 + B) for a value nobody has and
B(1 + A) for one everybody has: both are convex, and a > b is u, w > 0. All three of the paper's programs are therefore
convex here, opt0 too, which in a and b is not.

Source: Gu, Li, Xiong and Cao, "Providing Input-Discriminative Protection for Local Differential Privacy", ICDE 2020,
section V; programs opt0, opt1 and opt2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from ldp.frequency_oracle import Floats
from link.errors import ConfigurationError, InternalError

PROGRAMS: Final = ("opt0", "opt1", "opt2")

_LEAST: Final = 1e-4  # share of the smallest budget that u and w have at least


@dataclass(frozen=True, slots=True)
class Levels:
    """Values grouped by their budgets.

    Attributes:
        budgets: ε_i, rising.
        sizes: m_i, how many values have each.
    """

    budgets: tuple[float, ...]
    sizes: tuple[int, ...]

    def pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs (i, j) of levels that two different values can have."""
        number = range(len(self.budgets))
        return [(i, j) for i in number for j in number if i != j or self.sizes[i] > 1]

    def bound(self, i: int, j: int) -> float:
        """r_ij, the smaller budget."""
        return min(self.budgets[i], self.budgets[j])


def objective(levels: Levels, a: Floats, b: Floats) -> float:
    """The total variance per user in the worst case of the data.

    Σ_i m_i·b_i(1 − b_i)/(a_i − b_i)² + max_i (1 − a_i − b_i)/(a_i − b_i)

    Args:
        levels: The levels.
        a: Probability of a 1 at the user's own value, for each level.
        b: The same at another value.
    """
    sizes = np.array(levels.sizes)
    return float((sizes * b * (1 - b) / (a - b) ** 2).sum() + ((1 - a - b) / (a - b)).max())


def solve(levels: Levels, program: str) -> tuple[Floats, Floats]:
    """The a and b of each level that one of `PROGRAMS` finds, as real numbers.

    Raises:
        ConfigurationError: There is no such program.
    """
    programs: dict[str, Callable[[Levels], tuple[Floats, Floats]]] = {"opt0": _opt0, "opt1": _opt1, "opt2": _opt2}
    if program not in programs:
        raise ConfigurationError(f"there is no program '{program}'; take one of {', '.join(PROGRAMS)}")
    return programs[program](levels)


def _opt0(levels: Levels) -> tuple[Floats, Floats]:
    """Variables u, w and s, the logarithm of what is minimised: s ≥ ln(Σ_i m_i·A_i(1 + B_i) + B_j − A_j) for each j."""
    t, sizes, pairs = len(levels.budgets), np.array(levels.sizes), levels.pairs()
    share = np.zeros((len(pairs), 2 * t + 1))
    for row, (i, j) in enumerate(pairs):
        share[row, i], share[row, t + j] = 1, 1
    bounds = np.array([levels.bound(i, j) for i, j in pairs])

    def totals(x: Floats) -> tuple[Floats, Floats, Floats]:
        ones, zeros = 1 / np.expm1(x[:t]), 1 / np.expm1(x[t : 2 * t])
        return (sizes * ones * (1 + zeros)).sum() + zeros - ones, ones, zeros

    def gaps(x: Floats) -> Floats:
        return np.asarray(x[-1] - np.log(totals(x)[0]))

    def slopes(x: Floats) -> Floats:
        total, ones, zeros = totals(x)
        common = np.concatenate([-sizes * ones * (1 + ones) * (1 + zeros), -sizes * ones * zeros * (1 + zeros)])
        jacobian = np.tile(common, (t, 1))
        jacobian[:, :t] += np.diag(ones * (1 + ones))
        jacobian[:, t:] -= np.diag(zeros * (1 + zeros))
        return np.hstack([-jacobian / total[:, None], np.ones((t, 1))])

    def worst(x: Floats) -> float:
        return float(totals(x)[0].max())

    # No u or w exceeds its level's budget, and totals fall in both: a bound that keeps the search from running away.
    most = np.array(2 * levels.budgets)
    candidates = []
    for a, b in (_opt1(levels), _opt2(levels)):
        start = _kept(levels, np.log(a / b), np.log((1 - b) / (1 - a)))
        found = _minimised(
            lambda x: float(x[-1]),
            lambda x: np.concatenate([np.zeros(2 * t), [1.0]]),
            np.append(start, math.log(worst(start))),
            [*((_LEAST * levels.budgets[0], each) for each in most), (math.log(worst(most)), math.log(worst(start)))],
            [
                {"type": "ineq", "fun": lambda x: bounds - share @ x, "jac": lambda x: -share},
                {"type": "ineq", "fun": gaps, "jac": slopes},
            ],
        )
        candidates += [start, _kept(levels, found[:t], found[t:-1])]
    best = min(candidates, key=worst)
    return _probabilities(best[:t], best[t:])


def _kept(levels: Levels, u: Floats, w: Floats) -> Floats:
    """One array of u and w, made smaller by the factor with which they keep the budgets, where they do not."""
    factor = min(1.0, *(levels.bound(i, j) / (u[i] + w[j]) for i, j in levels.pairs()))
    kept: Floats = np.concatenate([u, w]) * factor
    return kept


def _opt1(levels: Levels) -> tuple[Floats, Floats]:
    """Variables τ = u = w: min ln Σ m_i·e^τ_i/(e^τ_i − 1)² under τ_i + τ_j ≤ r_ij."""
    t, sizes, pairs = len(levels.budgets), np.array(levels.sizes), levels.pairs()
    share = np.zeros((len(pairs), t))
    for row, (i, j) in enumerate(pairs):
        share[row, i] += 1
        share[row, j] += 1
    bounds = np.array([levels.bound(i, j) for i, j in pairs])

    def each(x: Floats) -> Floats:
        ones = 1 / np.expm1(x)
        return np.asarray(sizes * ones * (1 + ones))

    half = levels.budgets[0] / 2
    tau = _minimised(
        lambda x: math.log(each(x).sum()),
        lambda x: -each(x) * (1 + 2 / np.expm1(x)) / each(x).sum(),
        np.full(t, half),
        [(_LEAST * half, each) for each in levels.budgets],
        [{"type": "ineq", "fun": lambda x: bounds - share @ x, "jac": lambda x: -share}],
    )
    return _probabilities(tau, tau)


def _opt2(levels: Levels) -> tuple[Floats, Floats]:
    """Variables b < 1/2: min ln Σ m_i·b_i(1 − b_i)/(1/2 − b_i)² under b_i·e^r_ij + b_j ≥ 1.

    The search counts b_i in units of OUE's 1/(e^ε_i + 1), so that all variables have the same size.
    """
    t, sizes, pairs = len(levels.budgets), np.array(levels.sizes), levels.pairs()
    units = 1 / (np.exp(levels.budgets) + 1)
    share = np.zeros((len(pairs), t))
    for row, (i, j) in enumerate(pairs):
        share[row, i] += math.exp(levels.bound(i, j)) * units[i]
        share[row, j] += units[j]

    def total(x: Floats) -> float:
        b = x * units
        return float((sizes * b * (1 - b) / (0.5 - b) ** 2).sum())

    found = _minimised(
        lambda x: math.log(total(x)),
        lambda x: units * sizes / 2 / (0.5 - x * units) ** 3 / total(x),
        units[0] / units,
        [(1e-3, float(0.5 * (1 - _LEAST * levels.budgets[0]) / unit)) for unit in units],
        [{"type": "ineq", "fun": lambda x: share @ x - 1, "jac": lambda x: share}],
    )
    return np.full(t, 0.5), found * units


def _probabilities(u: Floats, w: Floats) -> tuple[Floats, Floats]:
    """The a and b of ln(a / b) = u and ln((1 − b) / (1 − a)) = w."""
    b = -np.expm1(-w) / (np.exp(u) - np.exp(-w))
    return np.exp(u) * b, b


def _minimised(
    value: Callable[[Floats], float],
    slope: Callable[[Floats], Floats],
    start: Floats,
    bounds: list[tuple[float | None, float | None]],
    constraints: list[dict[str, Any]],
) -> Floats:
    with warnings.catch_warnings():  # scipy before 1.16 tells that rounding has taken it across a bound, and clips
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        found = minimize(
            value,
            start,
            jac=slope,
            bounds=bounds,
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
    # At this precision the search may end for want of a better step; whatever it has then is made to fit the budgets.
    if not np.isfinite(found.x).all():
        raise InternalError("the search for probabilities failed")
    return np.asarray(found.x, dtype=np.float64)
