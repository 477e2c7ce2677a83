"""What key agreement, secure sums and masked maxima send; see `pairwise`, `secure_sum` and `masked_maximum`."""

from __future__ import annotations

from collections.abc import Sequence

from crypto.protocols.sums.masked_maximum import LABEL, WORD_BYTES
from crypto.protocols.sums.pairwise import KEY_BYTES
from crypto.protocols.sums.pairwise import LANE as PAIRWISE
from crypto.protocols.sums.secure_sum import DIRECT_BYTES, slices
from link.traffic import Traffic
from protos.v1.secure_sum_pb2 import AgreementKey


def agreement_traffic(traffic: Traffic, lane: str) -> None:
    """Enters `pairwise.agree`: 1 round."""
    for party in traffic.parties:
        traffic.broadcast(party, f"{lane}/{PAIRWISE}", AgreementKey(public_key=bytes(KEY_BYTES)))
    traffic.rounds += 1


def sum_traffic(
    traffic: Traffic, lane: str, *, values: int, word_bytes: int, label: str, to: Sequence[str] | None = None
) -> None:
    """Enters `secure_sum.secure_sum`: 1 round, or 2 in slices.

    Args:
        traffic: Where the frames are entered.
        lane: The lane's path.
        values: Length of the vectors.
        word_bytes: Bytes of one value.
        label: As given to `secure_sum`.
        to: The receivers; all parties by default.
    """
    parties = traffic.parties
    receivers = parties if to is None else tuple(party for party in parties if party in to)
    if values * word_bytes <= DIRECT_BYTES or len(receivers) == 1 or len(parties) == 2:
        for party in parties:
            traffic.open(party, receivers, lane, label, values, values * word_bytes)
        traffic.rounds += 1
        return
    for receiver, part in zip(receivers, slices(values, len(receivers)), strict=True):
        number = part.stop - part.start
        for party in parties:  # everybody's share of the slice to who adds it up
            traffic.open(party, [receiver], lane, label, number, number * word_bytes)
        traffic.open(receiver, receivers, lane, label, number, number * word_bytes)
    traffic.rounds += 2


def maximum_traffic(traffic: Traffic, lane: str, most: Sequence[int], *, label: str = LABEL) -> None:
    """Enters `masked_maximum.masked_maximum` on the lane of this path: 1 round.

    Args:
        traffic: Where the frames are entered.
        lane: The lane's path.
        most: As given to `masked_maximum`.
        label: As given to `masked_maximum`.
    """
    sum_traffic(traffic, lane, values=sum(most), word_bytes=WORD_BYTES, label=label)
