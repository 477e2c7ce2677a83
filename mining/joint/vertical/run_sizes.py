"""What a joint vertical run sends, from the numbers on which it hangs: rows, names, candidates and their splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crypto.protocols.alignment.costs import AlignmentSizes, intersection_traffic, row_union_traffic
from crypto.protocols.comparison.costs import agreement_traffic as two_party_traffic
from crypto.protocols.products.chains import Itemset
from crypto.protocols.replicated.verified_costs import heard_traffic
from crypto.protocols.replicated.verified_count_costs import columns_traffic
from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from link.traffic import Traffic
from mining.data.items.bitmaps import words
from mining.joint.shared_rules import RuleSteps, rule_steps
from mining.joint.tally import SumRange
from mining.joint.tally_costs import compared_traffic, open_decision_traffic, rules_traffic, supports_traffic
from mining.joint.vertical.batches import BATCH_BYTES
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.engines.engine import EngineSpeed
from mining.joint.vertical.engines.grouped import holders_costs
from mining.joint.vertical.engines.products import Naming
from mining.joint.vertical.grouped.groups import ColumnGroup
from mining.joint.vertical.grouped.sizes import GroupSizes, after_level_1, before_level_1, repeated_traffic
from mining.joint.vertical.names import PREFIX_BYTES
from mining.joint.vertical.parameters import VerticalMining, in_job_order
from mining.joint.vertical.verified_costs import verified_counts_traffic
from mining.thresholds import minimum_count

_WORD_BYTES = 8


@dataclass(frozen=True)
class Names:
    """Names that a party opens.

    Attributes:
        number: How many.
        longest: Bytes of the longest one.
    """

    number: int
    longest: int


@dataclass(frozen=True)
class Level:
    """Itemsets of two items or more, all of one length.

    Attributes:
        candidates: How many are decided on.
        frequent: How many of them are frequent.
        batches: Those that span parties, as an engine gets them, batch by batch of all candidates.
        names: Of each batch's conjunctions, as an engine gets them.
    """

    candidates: int
    frequent: int
    batches: tuple[Sequence[Itemset], ...]
    names: tuple[Naming, ...]


@dataclass(frozen=True)
class RunSizes:
    """The numbers on which the traffic of a run hangs.

    Attributes:
        rows: By party, its own.
        common: N, the rows that all parties have.
        positions: To which rows are aligned; N after an intersection.
        columns: By party, the names of its columns.
        numbered: By holder of columns, a party or a group, the items that are decided on by number after a union: of a
            party those that are frequent in its own rows.
        items: By holder, the names of its items that are frequent among the common rows.
        levels: Of itemsets of 2, 3, … items.
        rules: Rules that are decided on shares, batch by batch.
        groups: By group of several parties, what its level 1 hangs on.
    """

    rows: Mapping[str, int]
    common: int
    positions: int
    columns: Mapping[str, Names]
    numbered: Mapping[str, int]
    items: Mapping[str, Names]
    levels: tuple[Level, ...] = ()
    rules: tuple[int, ...] = ()
    groups: Mapping[str, GroupSizes] = field(default_factory=dict)

    @property
    def frequent(self) -> tuple[int, ...]:
        """How many itemsets of 1, 2, … items are frequent."""
        return sum(names.number for names in self.items.values()), *(level.frequent for level in self.levels)


def batch_sizes(candidates: int, positions: int) -> list[int]:
    """How many of so many candidates are computed on at a time."""
    step = max(1, BATCH_BYTES // max(1, _WORD_BYTES * words(positions)))
    return [min(step, candidates - start) for start in range(0, candidates, step)]


@dataclass(frozen=True)
class Call:
    """What an engine is asked to compute.

    Attributes:
        itemsets: Those that span parties.
        names: Of their conjunctions.
    """

    itemsets: Sequence[Itemset]
    names: Naming | None = None


def calls(sizes: RunSizes, task: VerticalMining) -> Iterator[Call]:
    """What an engine is asked to compute for the holders of columns, one call after the other."""
    holders = task.holders(tuple(sizes.rows))
    if task.mode == "union":
        yield Call([dict.fromkeys(holders, 0)])  # presence
        numbered = {holder: sizes.numbered[holder] for holder in holders}
        yield Call([{**numbered, holder: number} for holder in holders for number in range(numbered[holder])])
    for level in sizes.levels:
        for itemsets, names in zip(level.batches, level.names, strict=True):
            if itemsets:
                yield Call(itemsets, names)


def products_seconds(sizes: RunSizes, task: VerticalMining, speed: EngineSpeed, density: float) -> float:
    """Processor time of all calls of the engine, all parties together; arguments as of `EngineCosts.seconds`."""
    costs = holders_costs(chosen_engine(task), task, tuple(sizes.rows))
    return sum(costs.seconds(sizes.positions, call.itemsets, speed, density, call.names) for call in calls(sizes, task))


def comparisons(sizes: RunSizes, task: VerticalMining) -> list[tuple[int, int]]:
    """The batches that the computing parties compare: how many numbers, of how many bits."""
    if task.disclose == "candidates":
        return []
    width = _sums(sizes, task).width
    first = [sum(sizes.numbered.values())] if task.mode == "union" else []
    found = [(number, width) for number in (*first, *(level.candidates for level in sizes.levels)) if number]
    rules = _rule_steps(sizes, task)
    return found if rules is None else [*found, *((number, rules.width) for number in rules.batches if number)]


def mining_traffic(traffic: Traffic, task: VerticalMining, sizes: RunSizes) -> None:
    """Enters `vertical.mine`: all that is sent, and at least as many rounds."""
    parties = traffic.parties
    if task.is_verified:
        _verified_traffic(traffic, task, sizes)
        return
    task = replace(task, compute=in_job_order(parties, task.compute))
    agreement_traffic(traffic)
    begun = traffic.rounds
    if task.mode == "intersection":  # a union agrees with everybody itself
        _agreements_traffic(traffic, task)
    agreed, traffic.rounds = traffic.rounds, begun
    _names_traffic(traffic, sizes.columns)
    align_traffic = row_union_traffic if task.mode == "union" else intersection_traffic
    align_traffic(traffic, AlignmentSizes.of(sizes.rows, sizes.common, task.bound), task.merger)
    traffic.rounds = max(traffic.rounds, agreed)  # they go beside one another
    engine = chosen_engine(task).costs(task, parties)
    repeated_traffic(traffic, task.groups, task.compute, engine, sizes.positions)
    costs = holders_costs(chosen_engine(task), task, parties)
    for call in calls(sizes, task):
        if call.itemsets and sizes.positions:
            costs.traffic(traffic, rows=sizes.positions, itemsets=call.itemsets, names=call.names)
    if task.mode == "union":
        sum_traffic(traffic, _WORD_BYTES)  # of common rows
        _numbers_traffic(traffic, task, sizes)
        _decision_traffic(traffic, task, sizes, sum(sizes.numbered.values()), 0)
    _item_names_traffic(traffic, task, sizes)
    if task.disclose != "frequent":
        supports_traffic(traffic, task, sizes.frequent[0], sizes.common)
    for level in sizes.levels:
        _decision_traffic(traffic, task, sizes, level.candidates, level.frequent)
    if (rules := _rule_steps(sizes, task)) is not None:
        rules_traffic(traffic, task, rules)


def _verified_traffic(traffic: Traffic, task: VerticalMining, sizes: RunSizes) -> None:
    """Enters `verified.mine`."""
    parties = traffic.parties
    agreement_traffic(traffic)
    _names_traffic(traffic, sizes.columns)
    heard_traffic(traffic, len(parties))
    intersection_traffic(traffic, AlignmentSizes.of(sizes.rows, sizes.common, task.bound), task.merger, task.three)
    _names_traffic(traffic, sizes.items)
    heard_traffic(traffic, len(parties))
    items = {party: names.number for party, names in sizes.items.items()}
    if any(items.values()):
        columns_traffic(traffic, task.three, items, sizes.common)
    for length, (candidates, frequent) in enumerate(decided(sizes), 1):
        verified_counts_traffic(traffic, task, candidates, frequent, sizes.common, products=length > 1)


def decided(sizes: RunSizes) -> list[tuple[int, int]]:
    """Of itemsets of 1, 2, … items: how many are decided on where parties may deviate, and how many are frequent."""
    items = sizes.frequent[0]
    return [(items, items), *((level.candidates, level.frequent) for level in sizes.levels)]


def _agreements_traffic(traffic: Traffic, task: VerticalMining) -> None:
    """What pairs of parties agree on, all at once."""
    begun = traffic.rounds
    for pair in chosen_engine(task).agreements(task, traffic.parties):
        traffic.rounds = begun
        two_party_traffic(traffic, pair)


def _names_traffic(traffic: Traffic, names: Mapping[str, Names]) -> None:
    """Enters `names.open_names`: 1 round."""
    for party, each in names.items():
        traffic.send(party, traffic.parties, each.number * (PREFIX_BYTES + each.longest), 2)
    traffic.rounds += 1


def _numbers_traffic(traffic: Traffic, task: VerticalMining, sizes: RunSizes) -> None:
    """Numbers of items, after those of groups are known."""
    if not task.groups:
        for party in traffic.parties:
            traffic.send(party, traffic.parties, _WORD_BYTES)
    several = [group for group in task.groups if group.name in sizes.groups]
    traffic.rounds += max((before_level_1(traffic, group, sizes.groups[group.name]) for group in several), default=0)
    for group in task.groups:
        traffic.send(group.speaker, _outside(traffic, group), _WORD_BYTES)
    traffic.rounds += 1


def _item_names_traffic(traffic: Traffic, task: VerticalMining, sizes: RunSizes) -> None:
    """Names of items; of a group they become known to its members first."""
    if not task.groups:
        _names_traffic(traffic, sizes.items)
        return
    several = [group for group in task.groups if group.name in sizes.groups]
    traffic.rounds += max((after_level_1(traffic, group, sizes.groups[group.name]) for group in several), default=0)
    for group in task.groups:
        names = sizes.items[group.name]
        size = names.number * (PREFIX_BYTES + names.longest)
        traffic.send(group.speaker, _outside(traffic, group), size, 2)
    traffic.rounds += 1


def _outside(traffic: Traffic, group: ColumnGroup) -> list[str]:
    return [party for party in traffic.parties if party not in group.members]


def _decision_traffic(traffic: Traffic, task: VerticalMining, sizes: RunSizes, candidates: int, frequent: int) -> None:
    if not candidates:
        return
    if task.disclose == "candidates":
        open_decision_traffic(traffic, task, candidates, sizes.common)
        return
    compared_traffic(traffic, task.compute, candidates, _sums(sizes, task))
    if task.disclose == "supports":
        supports_traffic(traffic, task, frequent, sizes.common)


def _sums(sizes: RunSizes, task: VerticalMining) -> SumRange:
    """In what words supports are compared: addends are shares, which nobody can cap."""
    return SumRange.of(minimum_count(task.min_support, sizes.common), sizes.common)


def _rule_steps(sizes: RunSizes, task: VerticalMining) -> RuleSteps | None:
    if task.rules is None or not any(sizes.frequent[1:]):
        return None
    steps = rule_steps(sizes.frequent, sizes.common, task.rules)
    return replace(steps, batches=sizes.rules if steps.sums else ())
