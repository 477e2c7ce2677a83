"""What the engines of joint vertical mining send and compute, from public sizes alone, so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from crypto.protocols.products.chains import Itemset
from link.traffic import Traffic
from mining.joint.vertical.engines.engine import TYPICAL_DENSITY, Engine, EngineSpeed
from mining.joint.vertical.engines.grouped import holders_costs
from mining.joint.vertical.engines.registry import OWN
from mining.joint.vertical.parameters import Mode, VerticalMining


@dataclass(frozen=True)
class EngineCost:
    """What one engine comes to.

    Attributes:
        engine: Its name.
        bytes_sent: Of all parties.
        rounds: The longest chain of messages that wait for each other, at most.
        seconds: Processor time of all parties, one core.
    """

    engine: str
    bytes_sent: int
    rounds: int
    seconds: float

    def over(self, bytes_per_s: float, latency_s: float) -> float:
        """Seconds where all of it goes over one link, message after message, and nothing is computed meanwhile."""
        return self.seconds + self.bytes_sent / bytes_per_s + self.rounds * latency_s


def engine_costs(
    task: VerticalMining,
    parties: Sequence[str],
    rows: int,
    columns: Mapping[str, int],
    *,
    speed: EngineSpeed | None = None,
    density: float = TYPICAL_DENSITY,
    engines: Iterable[Engine] = tuple(OWN.values()),
) -> list[EngineCost]:
    """What every engine would come to for all candidates of two items; agreements not among it.

    Whether the job allows an engine is not asked: `replicated` needs a helper, or that three parties be trusted.

    Args:
        task: The public parameters; its engine does not matter.
        parties: Of the job.
        rows: Positions after the alignment.
        columns: By holder of columns, how many frequent items it has.
        speed: Of the machines.
        density: Share of the rows in which an item occurs.
        engines: Those to be compared.
    """
    itemsets, speed = pairs_of_items(task.holders(parties), columns, task.mode), speed or EngineSpeed()
    costs = []
    for engine in engines:
        traffic, seconds = Traffic(parties), 0.0
        if itemsets and rows:
            holders_costs(engine, task, parties).traffic(traffic, rows=rows, itemsets=itemsets)
            seconds = holders_costs(engine, task, parties).seconds(rows, itemsets, speed, density)
        costs.append(EngineCost(engine.name, sum(map(traffic.bytes_sent, parties)), traffic.rounds, seconds))
    return costs


def pairs_of_items(parties: Sequence[str], columns: Mapping[str, int], mode: Mode) -> list[Itemset]:
    """The candidates of two items of which several parties have a part, as an engine gets them.

    After a union every party takes part in all of them, by its presence where it has no item; and those of one party's
    items are among them.
    """
    across: list[Itemset] = [
        {first: i, second: j}
        for first, second in combinations(parties, 2)
        for i in range(columns[first])
        for j in range(columns[second])
    ]
    if mode == "intersection":
        return across
    presence = dict(columns)  # numbered after the items
    own: list[Itemset] = [
        {party: columns[party] + 1 + number}
        for party in parties
        for number in range(columns[party] * (columns[party] - 1) // 2)
    ]
    return [{**presence, **itemset} for itemset in (*across, *own)]
