"""What decisions on candidates and on rules send; see `tally` and `shared_rules`."""

from __future__ import annotations

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.comparison.comparison import blocks, ways
from crypto.protocols.comparison.costs import comparison_traffic, opened_traffic, shared_sum_traffic
from crypto.protocols.comparison.digit_tables import chain
from crypto.protocols.replicated.costs import comparison_traffic as replicated_comparison_traffic
from crypto.protocols.replicated.costs import masked_sum_traffic, sums_traffic
from crypto.protocols.sums.costs import sum_traffic
from crypto.protocols.sums.secure_sum import word_for
from link.traffic import Traffic
from mining.joint.shared_rules import DecidingRules, RuleSteps, receivers
from mining.joint.tally import SumRange, Tallying


def supports_traffic(traffic: Traffic, task: Tallying, itemsets: int, most: int) -> None:
    """Enters sums of up to `most` that are opened to the learners; of none, nothing is said."""
    if itemsets:
        sum_traffic(traffic, itemsets * word_for(most).itemsize, task.learners)


def open_decision_traffic(traffic: Traffic, task: Tallying, candidates: int, most: int) -> None:
    """Enters a `Tally.decide` that opens all sums, of up to `most`."""
    supports_traffic(traffic, task, candidates, most)
    outsiders = [party for party in traffic.parties if party not in task.learners]
    traffic.send(task.learners[0], outsiders, candidates)
    traffic.rounds += bool(outsiders)


def compared_traffic(traffic: Traffic, holders: tuple[str, str] | Holders3, candidates: int, sums: SumRange) -> None:
    """Enters a `Tally.decide` in which sums stay shared, but for the supports of what is frequent.

    Args:
        traffic: Where it is entered.
        holders: The computing parties, in the order of the job.
        candidates: How many.
        sums: In what words they are.
    """
    if len(holders) == 3:
        sums_traffic(traffic, holders, number=candidates, width=sums.width)
    else:
        begun = traffic.rounds
        shared_sum_traffic(traffic, candidates * sums.word.itemsize, holders)
        if _begun_beside_the_sum(candidates, sums.width):
            traffic.rounds = begun
        comparison_traffic(traffic, holders, number=candidates, width=sums.width)
    opened_traffic(traffic, candidates // 8, holders)


def _begun_beside_the_sum(number: int, width: int) -> bool:
    """Whether the second holder begins the comparison, which has its share from the start and need not wait.

    It does where it receives the first digit's tables: in a tree, or in a chain of which the first holder leads all and
    sends the last digit's.
    """
    digits = chain(width - 1)
    if digits is None:
        return len(blocks(number)) == 1
    return len(ways(number)) == 1 and len(digits) % 2 == 1


def rules_traffic(traffic: Traffic, task: DecidingRules, rules: RuleSteps) -> None:
    """Enters a `decide_rules` whose batches are these."""
    holders, learning = task.computing, receivers(task, traffic.parties)
    if rules.sums and len(holders) == 3:
        masked_sum_traffic(traffic, holders, number=rules.sums, width=rules.width)
    elif rules.sums:
        shared_sum_traffic(traffic, rules.sums * rules.word_bytes, holders)
    for number in rules.batches:
        if len(holders) == 3:
            replicated_comparison_traffic(traffic, holders, number=number, width=rules.width)
        else:
            comparison_traffic(traffic, holders, number=number, width=rules.width)
        opened_traffic(traffic, number // 8, holders, learning)
