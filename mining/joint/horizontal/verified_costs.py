"""What a tally sends that holds against parties that deviate; see `verified_tally`."""

from __future__ import annotations

from crypto.protocols.replicated.verified_costs import decided_traffic, opened_traffic, summed_traffic
from crypto.protocols.replicated.verified_sums import sum_width
from link.traffic import Traffic
from mining.joint.horizontal.verified_tally import ROW_BITS, bits_of
from mining.joint.parameters import HorizontalMining


def verified_rows_traffic(traffic: Traffic, task: HorizontalMining) -> None:
    """Enters `VerifiedTally.open`."""
    summed_traffic(traffic, task.three, number=1, width=ROW_BITS)
    width = sum_width(len(traffic.parties), ROW_BITS)
    opened_traffic(traffic, task.three, traffic.parties, number=1, width=width)


def verified_traffic(traffic: Traffic, task: HorizontalMining, candidates: int, n_rows: int) -> None:
    """Enters `VerifiedTally.decide`, but for supports."""
    decided_traffic(traffic, task.three, number=candidates, width=bits_of(n_rows))
    opened_traffic(traffic, task.three, traffic.parties, number=candidates, width=1)


def verified_supports_traffic(traffic: Traffic, task: HorizontalMining, itemsets: int, n_rows: int) -> None:
    """Enters `VerifiedTally.supports`; of none, nothing is said."""
    if itemsets:
        opened_traffic(traffic, task.three, task.learners, number=itemsets, width=bits_of(n_rows))
