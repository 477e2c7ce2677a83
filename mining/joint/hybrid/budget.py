"""What reports may spend so that a record costs no more than agreed, and what it costs then.

In the local model a report has all of ε. In the shuffle model anybody who sees what comes out of the shufflers, or
anything that follows from it, sees a record behind all others that were asked the same: n reports of local ε₀ have a
much smaller ε together (`ldp.accounting.shuffling`). Each record answers in one phase alone, so that the worst phase
counts, and not their sum; and each phase has an ε₀ of its own, the largest for which it keeps to the central (ε, δ).

n counts reports behind which a record hides from the worst t + 1 parties: one that looks at the result, perhaps the
analyst, and t that help it. They know their own reports; so those of the t + 1 parties with most of them count for
nothing. It follows from numbers of records alone, which are public.

Phases are bounded by the privacy blankets of all mechanisms that they may turn out to have: how many candidates there
are is known beforehand, and of the lengths to which rows may be padded the costliest counts. Before it reports, a party
checks again with the mechanism that was announced (`is_kept`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
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


def search_plan(task: HybridMining, sizes: Mapping[str, int]) -> MiningPlan:
    """The search, each phase with the ε₀ that its reports may have; arguments and errors as of `central`."""
    by_phase = _local_epsilons(task, tuple(sorted(sizes.items())))
    return task.plan(max(by_phase), by_phase if len(set(by_phase)) > 1 else ())


def central(task: HybridMining, sizes: Mapping[str, int]) -> Spent:
    """What the search costs each record.

    Args:
        task: The public parameters.
        sizes: Numbers of records by party.

    Returns:
        With the local ε that reports have at most, in any phase. ε and δ are at most those of the task.

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
    phases, by_phase = phase_budgets(task, dict(sizes)), _local_epsilons(task, sizes)
    costs = [
        _cost(_mechanisms(task, local, number), phase)
        for number, (local, phase) in enumerate(zip(by_phase, phases, strict=True))
    ]
    worst, name = max(costs)
    divided = task.plan(max(by_phase)).divides_users
    epsilon = worst if divided else sum(each for each, _ in costs)
    return Spent(
        "shuffle",
        max(by_phase),
        min(_rounded_up(epsilon), task.epsilon),
        task.delta,
        min(phase.n for phase in phases),
        _NAMES[name],
    )


def _cost(mechanisms: list[Local], phase: PhaseBudget) -> tuple[float, str]:
    """What a phase costs, and by which bound, with any of these mechanisms; the first is the costliest as a rule."""
    from ldp.accounting.shuffling import bounds

    found = bounds(mechanisms[0], phase.n, phase.delta)
    name = min(found, key=found.__getitem__)
    cost = min(_rounded_up(found[name]), phase.epsilon)  # which it keeps to, whatever rounding says
    kept = all(is_kept(each, replace(phase, epsilon=cost)) for each in mechanisms[1:])
    return (cost if kept else phase.epsilon), name


@lru_cache(maxsize=64)
def _local_epsilons(task: HybridMining, sizes: tuple[tuple[str, int], ...]) -> tuple[float, ...]:
    """By phase, ε₀ of its reports; where a record pays in every phase, the same for all."""
    plan = task.plan(min(task.epsilon, task.most_local))
    if task.model == "local":
        return (task.epsilon,) * len(plan.shares)
    phases = dict(enumerate(phase_budgets(task, dict(sizes))))
    if plan.divides_users:
        return tuple(_largest_local(task, {number: phase}) for number, phase in phases.items())
    return (_largest_local(task, phases),) * len(phases)


def _largest_local(task: HybridMining, phases: Mapping[int, PhaseBudget]) -> float:
    """The largest ε₀ on the grid with which these phases, by their numbers, keep to their budgets."""

    def enough(local: float, tried: int | None = None) -> bool:
        return all(
            is_kept(mechanism, phase)
            for number, phase in phases.items()
            for mechanism in _mechanisms(task, local, number)[:tried]
        )

    high = task.most_local
    low = least = min(task.epsilon, high)  # no report needs others to hide it then
    if low == high or enough(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle, 1) else (low, middle)
    found = max(math.floor(low * _GRID) / _GRID, least)
    while found > least and not enough(found):  # another mechanism may cost more, or its parameters jump with ε₀
        found = max(math.floor(found * _SHRUNK * _GRID) / _GRID, least)
    return found


def _mechanisms(task: HybridMining, local: float, number: int) -> list[Local]:
    """All that a phase may turn out to have, the costliest first as a rule; or the ε₀ of one of which no more is known.

    Which items are asked about makes no difference, and how many is known. Rows are padded to one of a few lengths.
    """
    from ldp.sets.padding import PaddingAndSampling
    from ldp.sets.size_histogram import SetSizes, size_classes

    plan = task.plan(local)
    widths = _sizes_asked(plan)
    if number == 0:
        return [plan.phase([]).mechanism]
    if number in widths:
        return [SetSizes(widths[number], local, ends=size_classes(widths[number]))]
    if number - 1 in widths:
        width = widths[number - 1]
        return [PaddingAndSampling(width, local, length) for length in reversed(size_classes(width)[1:])]
    return [plan.phase_epsilon]


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
