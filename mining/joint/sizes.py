"""What a joint horizontal run sends, from the numbers on which it hangs: how many items, candidates and itemsets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crypto.protocols.comparison.costs import agreement_traffic as two_party_traffic
from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.union.costs import UnionSizes, union_traffic
from link.traffic import Traffic
from mining.joint.hidden_sizes import HiddenSizes, hidden_traffic
from mining.joint.hidden_universe import SUPPORTS as HIDDEN_SUPPORTS
from mining.joint.hidden_universe import VOTE
from mining.joint.level_wise import SUPPORTS
from mining.joint.parameters import HorizontalMining
from mining.joint.shared_rules import RuleSteps, rule_steps
from mining.joint.tally import SumRange
from mining.joint.tally_costs import compared_traffic, opened_traffic, rules_traffic, supports_traffic
from mining.thresholds import minimum_count

_WORD_BYTES = 8


@dataclass(frozen=True)
class MiningSizes:
    """The numbers on which the traffic of a run hangs.

    Attributes:
        n_rows: Transactions of all parties.
        universe: Items that are summed at level 1.
        items: The union of items; None with a public catalogue, or a hidden universe.
        hidden: The lists of a hidden universe.
        one_shot: The union of itemsets, where the one-shot strategy is tried and every enumeration is bounded.
        closure: Itemsets of two and more items that the one-shot strategy sums.
        candidates: Level-wise, of 2, 3, … items: how many are counted.
        thinned: Level-wise and thinned, for each of these: the union, whose elements are what is summed.
        tried: Whether the one-shot strategy is tried, with or without success.
        frequent: Of 1, 2, 3, … items: how many itemsets are frequent.
        rules: Rules that are decided on shares, batch by batch.
        together: What no support of two and more items is above, as all parties know once items are decided; None
            where they know of no such bound but the number of transactions.
    """

    n_rows: int
    universe: int
    items: UnionSizes | None
    hidden: HiddenSizes | None = None
    one_shot: UnionSizes | None = None
    closure: int = 0
    candidates: tuple[int, ...] = ()
    thinned: tuple[UnionSizes, ...] = ()
    tried: bool = False
    frequent: tuple[int, ...] = ()
    rules: tuple[int, ...] = ()
    together: int | None = None

    def frequent_of(self, length: int) -> int:
        """How many itemsets of this length are frequent."""
        return self.frequent[length - 1] if length <= len(self.frequent) else 0

    @property
    def most_together(self) -> int:
        """What no support of two and more items is above."""
        return self.n_rows if self.together is None else self.together


@dataclass(frozen=True)
class Sum:
    """A secure sum of one value that is opened to all."""

    lane: str
    label: str


@dataclass(frozen=True)
class Union:
    """A secure set union."""

    lane: str
    label: str
    sizes: UnionSizes


@dataclass(frozen=True)
class Hidden:
    """What a hidden universe takes beside the tally."""

    sizes: HiddenSizes


@dataclass(frozen=True)
class Vote:
    """A `Ballot.decide` on sums of up to `most`, but for the supports of what is frequent where sums stay shared."""

    lane: str
    candidates: int
    frequent: int
    most: int


@dataclass(frozen=True)
class Supports:
    """A `Ballot.supports`: the sums, of up to `most`, of itemsets that are frequent, opened to the learners."""

    lane: str
    itemsets: int
    most: int


@dataclass(frozen=True)
class RulesOnShares:
    """A `decide_rules`."""

    lane: str
    steps: RuleSteps


Step = Sum | Union | Hidden | Vote | Supports | RulesOnShares


def steps(task: HorizontalMining, sizes: MiningSizes) -> list[Step]:
    """What `horizontal.mine` does, one after the other; nothing of what is empty."""
    found: list[Step] = [Sum("rows", "rows")]
    n_rows, together = sizes.n_rows, sizes.most_together
    if sizes.items is not None:
        found.append(Union("items", "items", sizes.items))
    if sizes.hidden is not None:
        elements, frequent = sizes.hidden.positions.elements, sizes.frequent_of(1)
        found += [Hidden(sizes.hidden), *_vote(VOTE, elements, frequent, n_rows)]
        if task.disclose != "frequent":
            found.append(Supports(HIDDEN_SUPPORTS, frequent, n_rows))
    else:
        found += _vote("level-1", sizes.universe, sizes.frequent_of(1), n_rows)
        found += _supports(task, "level-1/supports", sizes.frequent_of(1), n_rows)
    if sizes.tried:
        found.append(Sum("bounded", "enumeration_bounded"))
    if sizes.one_shot is not None:
        found.append(Union("itemsets", "itemsets", sizes.one_shot))
        found += _vote("one-shot", sizes.closure, sum(sizes.frequent[1:]), together)
        found += _supports(task, "one-shot/supports", sum(sizes.frequent[1:]), together)
    else:
        for place, candidates in enumerate(sizes.candidates):
            name = f"level-{place + 2}"
            if place < len(sizes.thinned):
                found.append(Union(f"{name}/thin", "candidates", sizes.thinned[place]))
                candidates = sizes.thinned[place].elements
            found += _vote(name, candidates, sizes.frequent_of(place + 2), together)
        found += _supports(task, SUPPORTS, sum(sizes.frequent[1:]), together)
    if task.rules is not None and any(sizes.frequent[1:]):
        decided = rule_steps(sizes.frequent, sizes.n_rows, task.rules)
        found.append(RulesOnShares("rules", replace(decided, batches=sizes.rules if decided.sums else ())))
    return found


def _vote(lane: str, candidates: int, frequent: int, most: int) -> list[Vote]:
    return [Vote(lane, candidates, frequent, most)] if candidates else []


def _supports(task: HorizontalMining, lane: str, frequent: int, most: int) -> list[Supports]:
    return [Supports(lane, frequent, most)] if task.disclose == "supports" and frequent else []


def mining_traffic(traffic: Traffic, lane: str, task: HorizontalMining, sizes: MiningSizes) -> None:
    """Enters `horizontal.mine` on the lane of this path."""
    if task.is_shared:
        begun = traffic.rounds
        two_party_traffic(traffic, f"{lane}/two-party", task.compute)
        traffic.rounds = begun  # it goes beside the keys and the number of rows, which take as many rounds
    agreement_traffic(traffic, f"{lane}/keys")
    for step in steps(task, sizes):
        match step:
            case Sum(name, label):
                sum_traffic(traffic, f"{lane}/{name}", values=1, word_bytes=_WORD_BYTES, label=label)
            case Union(name, label, union):
                union_traffic(traffic, f"{lane}/{name}", union, merger=task.merger, label=label)
            case Hidden(hidden):
                hidden_traffic(traffic, lane, task, hidden)
            case Vote(name, candidates, _, _) if task.is_shared:
                sums = capped_sums(task, len(traffic.parties), sizes.n_rows)
                compared_traffic(traffic, f"{lane}/{name}", task, candidates, sums)
            case Vote(name, candidates, _, most):
                opened_traffic(traffic, f"{lane}/{name}", task, candidates, most)
            case Supports(name, itemsets, most):
                supports_traffic(traffic, f"{lane}/{name}", task, itemsets, most)
            case RulesOnShares(name, rules):
                rules_traffic(traffic, f"{lane}/{name}", task, rules)


def capped_sums(task: HorizontalMining, n_parties: int, n_rows: int) -> SumRange:
    """In what words candidates' counts are summed where sums stay shared."""
    return SumRange.capped(minimum_count(task.min_support, n_rows), n_parties, n_rows)
