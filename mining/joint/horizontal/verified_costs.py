"""What a tally sends that holds against parties that deviate; see `verified_tally`."""

from __future__ import annotations

from crypto.protocols.replicated.verified_costs import decided_traffic, opened_traffic, total_traffic
from link.traffic import Traffic
from mining.joint.horizontal.verified_tally import ROW_BITS, bits_of
from mining.joint.parameters import HorizontalMining


def verified_rows_traffic(traffic: Traffic, task: HorizontalMining) -> None:
    """Enters `VerifiedTally.open`."""
    total_traffic(traffic, task.three, width=ROW_BITS)


def verified_traffic(traffic: Traffic, task: HorizontalMining, candidates: int, n_rows: int) -> None:
    """Enters `VerifiedTally.decide`, but for supports."""
    decided_traffic(traffic, task.three, number=candidates, width=bits_of(n_rows))
    opened_traffic(traffic, task.three, traffic.parties, number=candidates, width=1)


def verified_supports_traffic(traffic: Traffic, task: HorizontalMining, itemsets: int, n_rows: int) -> None:
    """Enters `VerifiedTally.supports`; of none, nothing is said."""
    if itemsets:
        opened_traffic(traffic, task.three, task.learners, number=itemsets, width=bits_of(n_rows))
