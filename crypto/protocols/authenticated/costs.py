"""What deciding between two costs where one may deviate; see `authenticated_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.primitives.polynomial_hash import SEED_BYTES
from crypto.protocols.authenticated.and_triples import buckets_for, pieces
from crypto.protocols.authenticated.authenticated_sums import ANDS, blocks
from crypto.protocols.authenticated.checks import COIN_BYTES, DIGEST_BYTES
from crypto.protocols.authenticated.correlation import FIELD_BITS
from crypto.protocols.authenticated.decisions import decision_planes, total_planes
from crypto.protocols.authenticated.inputs import HASH_BYTES, MASK_BITS
from crypto.protocols.transfers.costs import rows_bytes, seeds_traffic
from crypto.protocols.transfers.ot_extension import BATCH
from link.traffic import Traffic

_TAG_BYTES: Final = 8
_KEY_BYTES: Final = 32
_KEPT: Final = 280  # bytes that an AND takes, with the leaky ones that become one, while these are combined; measured

Holders = tuple[str, str]


def keys_traffic(traffic: Traffic, holders: Holders) -> None:
    """Enters what a `Keyed` agrees upon: 2 rounds."""
    first, second = holders
    seeds_traffic(traffic, first, second, FIELD_BITS, 1)
    seeds_traffic(traffic, second, first, FIELD_BITS, 1)
    traffic.rounds += 2


def summed_traffic(traffic: Traffic, holders: Holders, *, number: int, width: int) -> None:
    """Enters `authenticated_sums.summed`."""
    _checked_traffic(traffic, holders, number=number, width=width, steps=total_planes(len(traffic.parties), width))


def decided_traffic(traffic: Traffic, holders: Holders, *, number: int, width: int) -> None:
    """Enters `authenticated_sums.decided`."""
    for part in blocks(number, len(traffic.parties), width):
        size = part.stop - part.start
        steps = decision_planes(len(traffic.parties), width)
        zeros = len(traffic.parties)
        _checked_traffic(traffic, holders, number=size, width=width, steps=steps, zeros=zeros)


def opened_traffic(traffic: Traffic, holders: Holders, to: tuple[str, ...], *, number: int, width: int) -> None:
    """Enters `authenticated_sums.opened`."""
    outsiders, size = [name for name in to if name not in holders], width * _octets(number)
    for holder in holders:
        traffic.send(holder, holders, size)
        traffic.send(holder, outsiders, size)
    traffic.rounds += 1  # what others are told takes one more, which the next batch does not wait for
    _compared_traffic(traffic, holders)


def ands(number: int, parties: int, width: int) -> int:
    """ANDs of `authenticated_sums.decided`."""
    return number * sum(decision_planes(parties, width))


def kept_bytes(number: int, parties: int, width: int) -> int:
    """Bytes that one of the two has in memory at once, about."""
    return _KEPT * min(ands(number, parties, width), ANDS)


def _checked_traffic(
    traffic: Traffic, holders: Holders, *, number: int, width: int, steps: Sequence[int], zeros: int = 0
) -> None:
    dealers = [name for name in traffic.parties if name not in holders]
    bits = number * width
    for dealer in dealers:
        message = HASH_BYTES + SEED_BYTES + HASH_BYTES
        traffic.send(dealer, holders[0], _KEY_BYTES + message)
        traffic.send(dealer, holders[1], message + _octets(bits), messages=2)
    _correlated_traffic(traffic, holders, bits + len(dealers) * (bits + MASK_BITS))
    buckets = buckets_for(number * sum(steps))
    for size in pieces(buckets.leaky):
        for _ in range(3):
            _correlated_traffic(traffic, holders, size)
        _both(traffic, holders, size * _TAG_BYTES + _octets(size), messages=2)
    _compared_traffic(traffic, holders)
    _both(traffic, holders, _octets(buckets.number * (buckets.size - 1)))
    if dealers:
        _both(traffic, holders, len(dealers) * (SEED_BYTES + HASH_BYTES), messages=2)
    _both(traffic, holders, sum(_octets(2 * number * planes) for planes in steps), messages=len(steps))
    _compared_traffic(traffic, holders, zeros)
    traffic.rounds += 3 * len(pieces(buckets.leaky)) + 1 + len(steps)


def _correlated_traffic(traffic: Traffic, holders: Holders, number: int) -> None:
    _both(traffic, holders, rows_bytes(number, FIELD_BITS), messages=-(-number // BATCH))


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
