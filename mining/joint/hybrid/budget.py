"""What reports may spend so that a record costs no more than agreed, and what it costs then.

In the local model a report has all of ε. In the shuffle model whoever sees what comes out of the shufflers, or anything
that follows from it, sees a record behind all others that were asked the same: n reports of local ε₀ have a much
smaller ε together (`ldp.accounting.shuffling`). Here ε₀ is the largest for which every phase keeps to the central
(ε, δ). Each record answers in one phase alone, so that the worst phase counts, and not their sum.

n counts reports behind which a record hides from the worst t + 1 parties: one that looks at the result, perhaps the
analyst, and t that help it. They know their own reports; so those of the t + 1 parties with most of them count for
nothing. It follows from numbers of records alone, which are public.

Phases whose mechanism is known beforehand are reckoned by its own privacy blanket, others by what holds for all
mechanisms. Before it reports, a party reckons again with the mechanism that was announced (`is_kept`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mining.joint.hybrid.parameters import Hops, HybridMining
from mining.joint.spent import Spent

if TYPE_CHECKING:
    from ldp.accounting.shuffling import Local
    from ldp.sets.plan import MiningPlan

_GRID: Final = 10_000  # local ε in steps of 1/10,000, so that all parties come to the same on any machine
_STEPS: Final = 16
_SHRUNK: Final = 0.98
_DIGITS: Final = 6

_NAMES: Final[Mapping[str, str]] = {
    "blanket": "privacy blanket",
    "clone": "clones",
    "closed": "clones, closed form",
    "local": "local randomiser",
}


@dataclass(frozen=True, slots=True)
class PhaseBudget:
    """What one phase may cost.

    Attributes:
        n: Reports that hide each other, at least.
        epsilon: Central ε.
        delta: Central δ.
    """

    n: int
    epsilon: float
    delta: float


def central(task: HybridMining, sizes: Mapping[str, int]) -> Spent:
    """What the search costs each record.

    Args:
        task: The public parameters.
        sizes: Numbers of records by party.

    Returns:
        With the local ε that reports have. ε and δ are at most those of the task.

    Raises:
        ConfigurationError: The catalogue has too few items for the search.
    """
    return _central(task, tuple(sorted(sizes.items())))


def phase_budgets(task: HybridMining, sizes: Mapping[str, int]) -> list[PhaseBudget]:
    """What each phase of a search in the shuffle model may cost, and how many reports it has at least for that."""
    plan = task.plan(min(task.epsilon, task.most_local))
    parts = 1 if plan.divides_users else len(plan.shares)  # else a record pays in every phase
    return [
        PhaseBudget(hidden([least_group(each, share) for each in sizes.values()], task), *_split(task, parts))
        for share in plan.shares
    ]


def least_group(records: int, share: Fraction) -> int:
    """How many of a party's records answer in a phase of this share, at least; see `groups.drawn`."""
    return math.floor(share * records)


def hidden(reports: list[int], task: Hops) -> int:
    """How many reports are left if those of the t + 1 parties with most are known; the record's own counts always."""
    return max(1, sum(sorted(reports)[: len(reports) - task.colluding - 1]))


def is_kept(mechanism: Local, budget: PhaseBudget) -> bool:
    """Whether a phase with this mechanism keeps to its budget, by a bound that is proved."""
    from ldp.accounting.shuffling import amplified_delta

    return amplified_delta(mechanism, budget.n, budget.epsilon) <= budget.delta


def _split(task: HybridMining, parts: int) -> tuple[float, float]:
    return task.epsilon / parts, task.delta / parts


@lru_cache(maxsize=64)
def _central(task: HybridMining, sizes: tuple[tuple[str, int], ...]) -> Spent:
    if task.model == "local":
        return Spent("local", task.epsilon, task.epsilon, 0.0, None, "local randomiser")
    from ldp.accounting.shuffling import bounds

    phases = phase_budgets(task, dict(sizes))
    local = _largest_local(task, phases)
    costs = []
    for mechanism, phase in zip(_mechanisms(task, local), phases, strict=True):
        found = bounds(mechanism, phase.n, phase.delta)
        name = min(found, key=found.__getitem__)
        costs.append((min(found[name], phase.epsilon), name))  # which it keeps to, whatever rounding says
    worst, name = max(costs)
    epsilon = worst if task.plan(local).divides_users else sum(each for each, _ in costs)
    return Spent(
        "shuffle",
        local,
        min(_rounded_up(epsilon), task.epsilon),
        task.delta,
        min(phase.n for phase in phases),
        _NAMES[name],
    )


def _largest_local(task: HybridMining, phases: list[PhaseBudget]) -> float:
    """The largest ε₀ on the grid with which all phases keep to their budgets."""

    def enough(local: float) -> bool:
        return all(map(is_kept, _mechanisms(task, local), phases))

    high = task.most_local
    low = min(task.epsilon, high)  # no report needs others to hide it then
    if low == high or enough(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    least = min(task.epsilon, task.most_local)
    found = max(math.floor(low * _GRID) / _GRID, least)
    while found > least and not enough(found):  # a mechanism's other parameters may jump with ε₀
        found = max(math.floor(found * _SHRUNK * _GRID) / _GRID, least)
    return found


def _mechanisms(task: HybridMining, local: float) -> list[Local]:
    """By phase the mechanism, where it follows from public parameters; else the ε₀ of one of which no more is known."""
    plan = task.plan(local)
    found: list[Local] = [plan.phase_epsilon] * len(plan.shares)
    found[0] = plan.phase([]).mechanism
    for number, width in _sizes_asked(plan).items():
        from ldp.sets.size_histogram import SetSizes, size_classes

        found[number] = SetSizes(width, plan.epsilon, ends=size_classes(width))
    return found


def _sizes_asked(plan: MiningPlan) -> dict[int, int]:
    """By number of the phase, how many candidates there are where only sizes are asked for."""
    from ldp.sets.svim import ItemMining
    from ldp.sets.svsm import ItemsetMining

    match plan:
        case ItemMining():
            return {1: min(2 * plan.k, plan.domain.size)}
        case ItemsetMining():
            items = plan.items.k
            itemsets = sum(math.comb(items, length) for length in range(2, plan.largest + 1))
            return {**_sizes_asked(plan.items), 3: min(2 * plan.k, itemsets)}
        case _:
            return {}


def _rounded_up(epsilon: float) -> float:
    """With so many significant digits as anybody reads, so that all parties write the same."""
    if epsilon == 0.0:  # δ alone is enough
        return epsilon
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return math.ceil(epsilon * scale) / scale
