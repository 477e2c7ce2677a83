"""What three computing parties send and do to decide which sums reach a threshold; see `comparison`."""

from __future__ import annotations

from typing import Final

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.comparison import BLOCK, ands_by_level, blocks, in_turn
from crypto.protocols.replicated.digits import carry_planes, digits, selected_planes
from link.traffic import Traffic

_MASKED_A_BIT: Final = 60
_KEPT_BYTES: Final = 16


def masked_sum_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `comparison.masked_sum`: 1 round."""
    for party in traffic.others(holders[0]):
        traffic.send(party, holders[0], width * _octets(number))
    traffic.rounds += 1


def comparison_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `comparison.at_least`: 1 round for one digit, else 1 + ⌈log2 digits⌉; none without numbers."""
    if not number:
        return
    first, second, third = holders
    cut, octets = digits(width - 1, number), _octets(number)
    traffic.send(first, third, (selected_planes(cut) + 1) * octets)
    traffic.rounds += 1
    if len(cut) == 1:
        return
    for sender, receiver in ((second, third), (third, second)):
        traffic.send(sender, receiver, carry_planes(cut) * octets)
    levels = ands_by_level(len(cut))[:-1]
    for ands in levels:
        for sender, receiver in ((first, third), (second, first), (third, second)):
            traffic.send(sender, receiver, ands * octets)
    traffic.rounds += 1 + len(levels)


def sums_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `comparison.sums_at_least`: as many rounds as both for one block."""
    begun = traffic.rounds
    for turn, part in enumerate(blocks(number)):
        traffic.rounds = begun
        three, size = in_turn(holders, turn), part.stop - part.start
        masked_sum_traffic(traffic, three, number=size, width=width)
        comparison_traffic(traffic, three, number=size, width=width)


def masked_bytes(number: int, width: int) -> int:
    """As many bytes under a mask take as long as `comparison.sums_at_least` at all three together; measured."""
    return _MASKED_A_BIT * number * width


def kept_bytes(number: int, width: int) -> int:
    """Bytes that one of the three has in memory at once, about: words, and what digits select."""
    at_once = min(number, 3 * BLOCK)
    return _KEPT_BYTES * at_once + 2 * selected_planes(digits(width - 1, at_once)) * _octets(at_once)


def _octets(number: int) -> int:
    return -(-number // 8)
