"""Which engine `auto` takes: the quickest of those that the job allows, by what the job itself says of its sizes.

The choice is part of what every party agrees to before anything is known of the data, so it follows from the job alone:
from the trust that it allows, from the sizes and the width of the network that it takes for granted, and from the speed
of a usual machine. All parties compute the same.

An engine that takes a helper is among them only where the job allows one; the others need nobody's trust.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt, prod
from typing import Final

from link.files.printable import enumeration
from mining.joint.usual_network import LATENCY_S
from mining.joint.vertical.engines.engine import Engine
from mining.joint.vertical.engines.names import AUTO
from mining.joint.vertical.engines.registry import OWN, engine_named
from mining.joint.vertical.grouped.groups import ColumnGroup, Groups
from mining.joint.vertical.parameters import COORDINATOR, Expectation, Mode, VerticalMining
from mining.joint.vertical.sizes import EngineCost, engine_costs

VERIFIED: Final = "replicated"  # the engine whose products are checked where parties may deviate
_MOST_GROUPS: Final = 3  # that are considered of a job with column groups, and
_MOST_MEMBERS: Final = 2  # of each
_MOST_PAIRS: Final = 40_000  # more items of a party are not considered: a choice takes half a second at most


@dataclass(frozen=True)
class EngineChoice:
    """What `auto` comes to.

    Attributes:
        engine: The quickest that is allowed; of equally quick ones what sends less.
        costs: Of the allowed engines, the quickest first, for the candidates of two items.
        assumed: What it rests on; `parties` and `items` are no more than are considered.
    """

    engine: str
    costs: tuple[EngineCost, ...]
    assumed: Expectation

    def seconds(self, cost: EngineCost) -> float:
        """What a cost comes to on the network that is taken for granted."""
        return cost.over(self.assumed.bytes_per_s, LATENCY_S)

    @property
    def reason(self) -> str:
        """The choice in a sentence."""
        taken, *others = self.costs
        sizes = (
            f"for {self.assumed.rows:,} common rows, {self.assumed.items} frequent items a party, density "
            f"{self.assumed.density:g} and {8e-6 * self.assumed.bytes_per_s:g} Mbit/s"
        )
        compared = ", ".join(f"{each.engine} {_seconds(self.seconds(each))}" for each in others)
        return (
            f'engine = "auto" takes {taken.engine}, which is quickest {sizes}, as the job has them or by default: '
            f"about {_seconds(self.seconds(taken))} for the pairs of items, against {compared}. "
        ) + self._trust()

    def _trust(self) -> str:
        helped = [name for name, engine in OWN.items() if engine.takes_helper]
        if any(cost.engine in helped for cost in self.costs):
            return f"{enumeration(helped)} is among them, since the job allows a helper."
        return f"{enumeration(helped)} is not among them, since the job allows none to help."


def allowed_engines(task: VerticalMining) -> tuple[str, ...]:
    """What `auto` may take under the trust of the job: engines of comine itself, which are the same at all parties."""
    if task.is_verified:
        return (VERIFIED,)
    return tuple(name for name, engine in OWN.items() if not engine.takes_helper or task.helper is not None)


def choose_engine(task: VerticalMining) -> EngineChoice:
    """The choice of `auto` in a job, whatever engine the job names."""
    shape = tuple(len(group.members) for group in task.groups)
    return _choose(allowed_engines(task), task.helper == COORDINATOR, task.mode, task.expectation, shape)


def chosen_engine(task: VerticalMining) -> Engine:
    """The engine that a job takes: the one that it names, or for `auto` the quickest that it allows.

    Raises:
        ConfigurationError: There is no engine of the name, or what another distribution brings cannot be used.
    """
    return engine_named(choose_engine(task).engine if task.engine == AUTO else task.engine)


def is_dealt(task: VerticalMining, parties: Sequence[str]) -> bool:
    """Whether the coordinator deals randomness to the two parties of a job."""
    return len(parties) == 2 and chosen_engine(task).helper(task, parties) == COORDINATOR


@lru_cache(maxsize=256)
def _choose(
    allowed: Sequence[str], dealt: bool, mode: Mode, expectation: Expectation, shape: tuple[int, ...]
) -> EngineChoice:
    # Transfers and encryption cost as much for each pair of parties as for another: three parties represent more, and
    # so do three groups of two.
    helped = any(OWN[name].takes_helper for name in allowed)
    groups = _representative(shape)
    n_parties = 2 if dealt else max(min(expectation.parties, 3), 3 if helped else 2)
    parties = tuple(party for group in groups for party in group.members) or tuple(
        f"party {number}" for number in range(1, n_parties + 1)
    )
    holders = len(groups) or n_parties
    each = prod(len(group.members) for group in groups) * holders ** (2 if mode == "intersection" else 3)
    assumed = replace(expectation, parties=n_parties, items=min(expectation.items, isqrt(_MOST_PAIRS // each)))
    helper = None if not helped else COORDINATOR if dealt else parties[2]
    task = VerticalMining(1, parties, (parties[0], parties[1]), parties[0], mode, helper=helper, groups=groups)
    items = dict.fromkeys(task.holders(parties), assumed.items)
    engines = [OWN[name] for name in allowed]
    costs = engine_costs(task, parties, assumed.rows, items, density=assumed.density, engines=engines)

    def order(cost: EngineCost) -> tuple[float, int, int]:
        return cost.over(assumed.bytes_per_s, LATENCY_S), cost.bytes_sent, -allowed.index(cost.engine)

    costs.sort(key=order)
    return EngineChoice(costs[0].engine, tuple(costs), assumed)


def _representative(shape: tuple[int, ...]) -> Groups:
    """Groups of so many members; of many, fewer."""
    found = []
    for place, members in enumerate(shape[:_MOST_GROUPS]):
        names = (f"party {place + 1}.{number}" for number in range(1, min(members, _MOST_MEMBERS) + 1))
        found.append(ColumnGroup(f"group {place + 1}", tuple(names)))
    return tuple(found)


def _seconds(number: float) -> str:
    return f"{number:.2g} s" if number < 100 else f"{number:,.0f} s"
