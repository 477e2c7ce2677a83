"""What a joint horizontal run sends, from the numbers on which it hangs: how many items, candidates and itemsets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crypto.protocols.comparison.costs import agreement_traffic as two_party_traffic
from crypto.protocols.replicated.verified_costs import or_traffic
from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.union.prefix_costs import AskedBits, pairs_traffic, prefix_union_traffic
from crypto.protocols.union.verified_union import verified_union_traffic
from link.traffic import Traffic
from mining.joint.horizontal.hidden_sizes import HiddenSizes, hidden_traffic
from mining.joint.horizontal.hidden_universe import VOTE
from mining.joint.horizontal.strategy import pairs_with_items
from mining.joint.horizontal.verified_costs import verified_rows_traffic, verified_supports_traffic, verified_traffic
from mining.joint.parameters import HorizontalMining
from mining.joint.shared_rules import RuleSteps, rule_steps
from mining.joint.tally import SumRange
from mining.joint.tally_costs import compared_traffic, open_decision_traffic, rules_traffic, supports_traffic
from mining.pairs import n_pairs
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
        closure: Itemsets of two or more items that the one-shot strategy sums.
        candidates: Level-wise, of 2, 3, … items: how many are counted.
        thinned: Level-wise and thinned, for each of these: the union, whose elements are what is summed.
        tried: Whether the one-shot strategy is tried, with or without success.
        frequent: Of 1, 2, 3, … items: how many itemsets are frequent.
        rules: Rules that are decided on shares, batch by batch.
        together: What no support of two or more items is above, as all parties know once items are decided; None
            where they know of no such bound but the number of transactions.
    """

    n_rows: int
    universe: int
    items: AskedBits | None
    hidden: HiddenSizes | None = None
    one_shot: AskedBits | None = None
    closure: int = 0
    candidates: tuple[int, ...] = ()
    thinned: tuple[AskedBits, ...] = ()
    tried: bool = False
    frequent: tuple[int, ...] = ()
    rules: tuple[int, ...] = ()
    together: int | None = None

    def frequent_of(self, length: int) -> int:
        """How many itemsets of this length are frequent."""
        return self.frequent[length - 1] if length <= len(self.frequent) else 0

    @property
    def most_together(self) -> int:
        """What no support of two or more items is above."""
        return self.n_rows if self.together is None else self.together


@dataclass(frozen=True)
class Union:
    """A union by prefixes."""

    asked: AskedBits


@dataclass(frozen=True)
class Hidden:
    """What a hidden universe takes beside the tally."""

    sizes: HiddenSizes


@dataclass(frozen=True)
class Vote:
    """A decision on sums of up to `most`, but for the supports of what is frequent where sums stay shared."""

    name: str
    candidates: int
    frequent: int
    most: int


@dataclass(frozen=True)
class Supports:
    """Supports: the sums, of up to `most`, of itemsets that are frequent, opened to the learners."""

    itemsets: int
    most: int


Step = Union | Hidden | Vote | Supports | RuleSteps


def steps(task: HorizontalMining, sizes: MiningSizes) -> list[Step]:
    """What `horizontal.mine` does, one after the other; nothing of what is empty, and no sum of a single number."""
    found: list[Step] = []
    n_rows, together = sizes.n_rows, sizes.most_together
    at_once = 2 if pairs_with_items(task, sizes.universe) else 1  # lengths that the first batch is about
    if sizes.items is not None:
        found.append(Union(sizes.items))
    if sizes.hidden is not None:
        positions, frequent = sizes.hidden.items.positions, sizes.frequent_of(1)
        found += [Hidden(sizes.hidden), *_vote(VOTE, positions, frequent, n_rows)]
        if task.disclose != "frequent":
            found.append(Supports(frequent, n_rows))
    else:
        pairs = n_pairs(sizes.universe) if at_once == 2 else 0
        frequent = sum(sizes.frequent[:at_once])
        found += _vote("level-1", sizes.universe + pairs, frequent, n_rows)
        found += _supports(task, frequent, n_rows)
    if sizes.one_shot is not None:
        found.append(Union(sizes.one_shot))
        found += _vote("one-shot", sizes.closure, sum(sizes.frequent[1:]), together)
        found += _supports(task, sum(sizes.frequent[1:]), together)
    else:
        for place, candidates in enumerate(sizes.candidates):
            if place + 2 <= at_once:
                continue
            if place < len(sizes.thinned):
                found.append(Union(sizes.thinned[place]))
                candidates = sizes.thinned[place].elements
            found += _vote(f"level-{place + 2}", candidates, sizes.frequent_of(place + 2), together)
        found += _supports(task, sum(sizes.frequent[at_once:]), together)
    if task.rules is not None and any(sizes.frequent[1:]):
        decided = rule_steps(sizes.frequent, sizes.n_rows, task.rules)
        found.append(replace(decided, batches=sizes.rules if decided.sums else ()))
    return found


def _vote(name: str, candidates: int, frequent: int, most: int) -> list[Vote]:
    return [Vote(name, candidates, frequent, most)] if candidates else []


def _supports(task: HorizontalMining, frequent: int, most: int) -> list[Supports]:
    return [Supports(frequent, most)] if task.disclose == "supports" and frequent else []


def mining_traffic(traffic: Traffic, task: HorizontalMining, sizes: MiningSizes) -> None:
    """Enters `horizontal.mine`."""
    if task.is_shared and task.helper is None and not task.is_verified:
        begun = traffic.rounds
        two_party_traffic(traffic, task.compute)
        traffic.rounds = begun  # it goes beside the keys and the number of rows, which take as many rounds
    agreement_traffic(traffic)
    if task.is_verified:
        verified_rows_traffic(traffic, task)
    else:
        sum_traffic(traffic, _WORD_BYTES)  # of rows
    if sizes.tried and task.is_verified:
        or_traffic(traffic, task.three, 1)
    elif sizes.tried:
        sum_traffic(traffic, _WORD_BYTES)  # whether enumerations are bounded
    taken = steps(task, sizes)
    if task.matches_in_pairs or (not task.is_verified and any(isinstance(step, Union) for step in taken)):
        agreed = task.compute if task.is_shared and task.helper is None else ()
        pairs_traffic(traffic, agreed, both=task.hides_names)
        if not task.matches_in_pairs:
            traffic.rounds += 2  # as the first union begins; a universe finds it done
    for step in taken:
        match step:
            case Union(asked) if task.is_verified:
                verified_union_traffic(traffic, task.three, asked)
            case Union(asked):
                prefix_union_traffic(traffic, asked)
            case Hidden(hidden):
                hidden_traffic(traffic, task.merger, hidden)
            case Vote(_, candidates, _, _) if task.is_verified:
                verified_traffic(traffic, task, candidates, sizes.n_rows)
            case Supports(itemsets, _) if task.is_verified:
                verified_supports_traffic(traffic, task, itemsets, sizes.n_rows)
            case Vote(_, candidates, _, _) if task.is_shared:
                sums = capped_sums(task, len(traffic.parties), sizes.n_rows)
                compared_traffic(traffic, task.computing, candidates, sums)
            case Vote(_, candidates, _, most):
                open_decision_traffic(traffic, task, candidates, most)
            case Supports(itemsets, most):
                supports_traffic(traffic, task, itemsets, most)
            case RuleSteps():
                rules_traffic(traffic, task, step)


def capped_sums(task: HorizontalMining, n_parties: int, n_rows: int) -> SumRange:
    """In what words candidates' counts are summed where sums stay shared."""
    return SumRange.capped(minimum_count(task.min_support, n_rows), n_parties, n_rows)
