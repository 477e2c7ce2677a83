"""What counting sends that holds against parties that deviate; see `verified`."""

from __future__ import annotations

from crypto.protocols.replicated.count_circuits import and_bytes, count_width
from crypto.protocols.replicated.verified_costs import KEPT, opened_traffic
from crypto.protocols.replicated.verified_count_costs import count_traffic
from crypto.protocols.replicated.verified_counts import at_once
from crypto.protocols.replicated.verified_sums import FEW
from link.traffic import Traffic
from mining.joint.vertical.parameters import VerticalMining
from mining.joint.vertical.verified import BATCHES_AT_ONCE, batches


def verified_counts_traffic(
    traffic: Traffic, task: VerticalMining, candidates: int, frequent: int, rows: int, *, products: bool
) -> None:
    """Enters the decision on so many candidates, of which so many are frequent, with their supports."""
    begun, longest, before = traffic.rounds, 0, 0
    parts = batches(candidates, rows)
    for part in parts:
        traffic.rounds, size = begun, part.stop - part.start
        count_traffic(traffic, task.three, columns=size, rows=rows, products=products)
        opened_traffic(traffic, task.three, traffic.parties, number=size, width=1)
        of_these = frequent * part.stop // candidates - before
        before += of_these
        if task.disclose == "supports" and of_these:
            opened_traffic(traffic, task.three, task.learners, number=of_these, width=count_width(rows))
        longest = max(longest, traffic.rounds - begun)
    traffic.rounds = begun + longest * -(-len(parts) // BATCHES_AT_ONCE)


def verified_and_bytes(candidates: int, rows: int, *, products: bool) -> int:
    """Bytes of all ANDs of the decision on so many candidates."""
    sizes = [part.stop - part.start for part in batches(candidates, rows)]
    return sum(sum(and_bytes(size, rows, products=products, few=size <= FEW)) for size in sizes)


def working_bytes(candidates: int, frequent: int, rows: int) -> int:
    """Bytes that one of the three has in memory at once, about: what is checked, and the products that are kept."""
    checked = sum(and_bytes(min(candidates, at_once(rows)), rows, products=True, few=True))
    copies = min(BATCHES_AT_ONCE, len(batches(candidates, rows)))
    return KEPT * checked * copies + 2 * frequent * -(-rows // 8)
