"""What a tally sends that holds against parties that deviate; see `verified_tally`."""

from __future__ import annotations

from crypto.protocols.authenticated import costs as between_two
from crypto.protocols.authenticated.decisions import decision_on, sum_width
from crypto.protocols.replicated import verified_costs as among_three
from link.traffic import Traffic
from mining.joint.horizontal.checked_sums import ROW_BITS
from mining.joint.horizontal.verified_tally import bits_of
from mining.joint.parameters import HorizontalMining
from mining.thresholds import minimum_count


def verified_rows_traffic(traffic: Traffic, task: HorizontalMining) -> None:
    """Enters `VerifiedTally.open`."""
    if task.helper is not None:
        among_three.total_traffic(traffic, task.three, width=ROW_BITS)
        return
    between_two.keys_traffic(traffic, task.compute)
    between_two.summed_traffic(traffic, task.compute, number=1, width=ROW_BITS)
    _opened_traffic(traffic, task, traffic.parties, 1, sum_width(len(traffic.parties), ROW_BITS))


def verified_traffic(traffic: Traffic, task: HorizontalMining, candidates: int, n_rows: int) -> None:
    """Enters `VerifiedTally.decide`, but for supports."""
    if task.helper is None:
        threshold = minimum_count(task.min_support, n_rows)
        between_two.decided_traffic(
            traffic, task.compute, number=candidates, threshold=threshold, width=bits_of(n_rows)
        )
    else:
        among_three.decided_traffic(traffic, task.three, number=candidates, width=bits_of(n_rows))
    _opened_traffic(traffic, task, traffic.parties, candidates, 1)


def verified_supports_traffic(traffic: Traffic, task: HorizontalMining, itemsets: int, n_rows: int) -> None:
    """Enters `VerifiedTally.supports`; of none, nothing is said."""
    if not itemsets:
        return
    planes = bits_of(n_rows)
    if task.helper is None:
        threshold = minimum_count(task.min_support, n_rows)
        planes = decision_on(len(traffic.parties), threshold, planes).sum_planes
    _opened_traffic(traffic, task, task.learners, itemsets, planes)


def _opened_traffic(traffic: Traffic, task: HorizontalMining, to: tuple[str, ...], number: int, width: int) -> None:
    if task.helper is None:
        between_two.opened_traffic(traffic, task.compute, to, number=number, width=width)
    else:
        among_three.opened_traffic(traffic, task.three, to, number=number, width=width)
