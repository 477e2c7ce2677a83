"""What key agreement, secure sums and masked maxima send; see `pairwise`, `secure_sum` and `masked_maximum`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crypto.protocols.sums.masked_maximum import WORD_BYTES
from crypto.protocols.sums.pairwise import KEY_BYTES
from crypto.protocols.sums.secure_sum import DIRECT_BYTES
from link.traffic import Traffic


def agreement_traffic(traffic: Traffic) -> None:
    """Enters `pairwise.agree`: 1 round."""
    for party in traffic.parties:
        traffic.send(party, traffic.parties, KEY_BYTES)
    traffic.rounds += 1


def sum_traffic(traffic: Traffic, size: int, to: Collection[str] | None = None) -> None:
    """Enters `secure_sum.secure_sum` of vectors of so many bytes: 1 round, or 2 in slices.

    Args:
        traffic: Where it is entered.
        size: Values times bytes of a word.
        to: The receivers; all parties by default.
    """
    parties = traffic.parties
    receivers = [party for party in parties if to is None or party in to]
    if size <= DIRECT_BYTES or len(receivers) == 1 or len(parties) == 2:
        for party in parties:
            traffic.send(party, receivers, size)
        traffic.rounds += 1
        return
    for receiver in receivers:  # everybody's share of a slice to who adds it up, who sends the sum
        for party in parties:
            traffic.send(party, receiver, size // len(receivers))
        traffic.send(receiver, receivers, size // len(receivers))
    traffic.rounds += 2


def maximum_traffic(traffic: Traffic, most: Sequence[int]) -> None:
    """Enters `masked_maximum.masked_maximum`, to which `most` is given: 1 round."""
    sum_traffic(traffic, sum(most) * WORD_BYTES)
