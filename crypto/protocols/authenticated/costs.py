"""What deciding between two costs where one may deviate; see `authenticated_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.primitives.polynomial_hash import SEED_BYTES
from crypto.protocols.authenticated.and_triples import GATE_BYTES, buckets_for, pieces
from crypto.protocols.authenticated.authenticated_sums import blocks
from crypto.protocols.authenticated.bit_proofs import ELEMENT_BYTES, PROOF_BYTES, PROOF_MASK_BITS
from crypto.protocols.authenticated.checks import COIN_BYTES, DIGEST_BYTES
from crypto.protocols.authenticated.correlation import FIELD_BITS
from crypto.protocols.authenticated.decisions import decision_on, decision_planes, total_planes
from crypto.protocols.authenticated.inputs import HASH_BYTES, MASK_BITS
from crypto.protocols.transfers.costs import rows_bytes, seeds_traffic
from crypto.protocols.transfers.ot_extension import BATCH
from link.traffic import Traffic

_KEY_BYTES: Final = 32
_KEPT: Final = 280  # bytes that an AND takes, with the leaky ones that become one, while these are combined; measured
_KEPT_OF_KNOWN: Final = 30  # bytes that a bit takes that one of the two knows, with its relations, about

Holders = tuple[str, str]


def keys_traffic(traffic: Traffic, holders: Holders) -> None:
    """Enters what a `Keyed` agrees upon: 2 rounds."""
    first, second = holders
    seeds_traffic(traffic, first, second, FIELD_BITS, 1)
    seeds_traffic(traffic, second, first, FIELD_BITS, 1)
    traffic.rounds += 2


def summed_traffic(traffic: Traffic, holders: Holders, *, number: int, width: int) -> None:
    """Enters `authenticated_sums.summed`."""
    bits = number * width
    _bound_traffic(traffic, holders, (bits, bits), bits)
    _ands_traffic(traffic, holders, number=number, steps=total_planes(len(traffic.parties), width))
    _compared_traffic(traffic, holders)


def decided_traffic(traffic: Traffic, holders: Holders, *, number: int, threshold: int, width: int) -> None:
    """Enters `authenticated_sums.decided`."""
    parties = len(traffic.parties)
    decision, others = decision_on(parties, threshold, width), parties - len(holders)
    planes = [decision.known_planes(first) for first in (True, False)]
    for part in blocks(number, parties, decision):
        size = part.stop - part.start
        first, second = (size * each + PROOF_MASK_BITS for each in planes)
        _bound_traffic(traffic, holders, (first, second), size * width)
        _both(traffic, holders, ELEMENT_BYTES + PROOF_BYTES, messages=2)
        _ands_traffic(traffic, holders, number=size, steps=decision_planes(parties, decision))
        _compared_traffic(traffic, holders, others)


def opened_traffic(traffic: Traffic, holders: Holders, to: tuple[str, ...], *, number: int, width: int) -> None:
    """Enters `authenticated_sums.opened`."""
    outsiders, size = [name for name in to if name not in holders], width * _octets(number)
    for holder in holders:
        traffic.send(holder, holders, size)
        traffic.send(holder, outsiders, size)
    traffic.rounds += 1  # what others are told takes one more, which the next batch does not wait for
    _compared_traffic(traffic, holders)


def authenticated_bits(number: int, parties: int, threshold: int, width: int) -> int:
    """How many bits the two authenticate for `authenticated_sums.decided`, those of each counted."""
    decision, found = decision_on(parties, threshold, width), 0
    known = sum(decision.known_planes(first) for first in (True, False)) + 2 * (parties - 2) * width
    for part in blocks(number, parties, decision):
        size = part.stop - part.start
        found += size * known + 2 * 3 * buckets_for(size * sum(decision_planes(parties, decision))).leaky
    return found


def kept_bytes(number: int, parties: int, threshold: int, width: int) -> int:
    """Bytes that one of the two has in memory at once, about."""
    decision = decision_on(parties, threshold, width)
    size = max((part.stop - part.start for part in blocks(number, parties, decision)), default=0)
    return size * (_KEPT * sum(decision_planes(parties, decision)) + _KEPT_OF_KNOWN * decision.known_planes(True))


def _bound_traffic(traffic: Traffic, holders: Holders, known: tuple[int, int], dealt: int) -> None:
    """Enters `inputs`: bits that each of the two knows, and that each other party deals."""
    dealers = [name for name in traffic.parties if name not in holders]
    for dealer in dealers:
        message = HASH_BYTES + SEED_BYTES + HASH_BYTES
        traffic.send(dealer, holders[0], _KEY_BYTES + message)
        traffic.send(dealer, holders[1], message + _octets(dealt), messages=2)
    for number, sender, receiver in zip(known, holders, holders[::-1], strict=True):
        _correlated_traffic(traffic, sender, receiver, number + len(dealers) * (dealt + MASK_BITS))
    if dealers:
        _both(traffic, holders, len(dealers) * (SEED_BYTES + HASH_BYTES), messages=2)


def _ands_traffic(traffic: Traffic, holders: Holders, *, number: int, steps: Sequence[int]) -> None:
    """Enters the triples for so many numbers, planes in each step, and the steps; what is bound needs fewer rounds."""
    buckets = buckets_for(number * sum(steps))
    for size in pieces(buckets.leaky):
        for sender, receiver in (holders, holders[::-1]):
            for _ in range(3):
                _correlated_traffic(traffic, sender, receiver, size)
        _both(traffic, holders, size * GATE_BYTES + _octets(size), messages=2)
    _compared_traffic(traffic, holders)
    _both(traffic, holders, _octets(buckets.number * (buckets.size - 1)))
    _both(traffic, holders, sum(_octets(2 * number * planes) for planes in steps), messages=len(steps))
    traffic.rounds += 3 * len(pieces(buckets.leaky)) + 1 + len(steps)


def _correlated_traffic(traffic: Traffic, sender: str, receiver: str, number: int) -> None:
    traffic.send(sender, receiver, rows_bytes(number, FIELD_BITS), messages=-(-number // BATCH))


def _compared_traffic(traffic: Traffic, holders: Holders, zeros: int = 0) -> None:
    """Enters `checks.compare`: 2 rounds, 3 with zeros."""
    told = 2 * DIGEST_BYTES + COIN_BYTES
    if zeros:
        told += DIGEST_BYTES + zeros * DIGEST_BYTES + COIN_BYTES
    _both(traffic, holders, told, messages=2 + bool(zeros))
    traffic.rounds += 2 + bool(zeros)


def _both(traffic: Traffic, holders: Holders, size: int, messages: int = 1) -> None:
    first, second = holders
    traffic.send(first, second, size, messages)
    traffic.send(second, first, size, messages)


def _octets(bits: int) -> int:
    return -(-bits // 8)
