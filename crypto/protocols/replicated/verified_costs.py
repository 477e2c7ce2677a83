"""What deciding among three costs where one may deviate; see `verified_sums`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.circuits import Circuit
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES
from crypto.protocols.replicated.dealing import sent_in_full
from crypto.protocols.replicated.evidence import COIN_BYTES, COMMITMENT_BYTES
from crypto.protocols.replicated.verified_ands import bucket_size, spare_size, unit_size
from crypto.protocols.replicated.verified_sums import BLOCK, FEW, Shares, blocks, decision, gate_planes, total
from link.traffic import Traffic

_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 72
_HEARD_COIN_BYTES: Final = COMMITMENT_BYTES + _SIGNATURE_BYTES
_HEARD_DEALING_BYTES: Final = 3 * COMMITMENT_BYTES + _SIGNATURE_BYTES + 3 * 2 * DIGEST_BYTES  # with hashes of 3 frames
_KEPT: Final = 60  # bytes that a byte of ANDs takes, with its triples, while it is checked


def summed_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `verified_sums.summed`."""
    _checked_traffic(traffic, holders, number=number, width=width, build=total)


def decided_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `verified_sums.decided`."""
    begun = longest = traffic.rounds
    for part in blocks(number):
        traffic.rounds, size = begun, part.stop - part.start
        _checked_traffic(traffic, holders, number=size, width=width, build=_decision(size))
        for holder in holders:
            traffic.send(holder, holders, DIGEST_BYTES * len(traffic.parties))
        traffic.rounds += 1
        longest = max(longest, traffic.rounds)
    traffic.rounds = longest


def opened_traffic(traffic: Traffic, holders: Holders3, to: tuple[str, ...], *, number: int, width: int) -> None:
    """Enters `crosschecks.opened`; 1 round."""
    size = width * _octets(number)
    for holder in holders:
        traffic.send(holder, [name for name in to if name in holders], size)
        traffic.send(holder, [name for name in to if name not in holders], 2 * size)
    traffic.rounds += 1


def ands(number: int, parties: int, width: int) -> int:
    """ANDs of `verified_sums.decided`, with those that fill up bytes."""
    return sum(
        8 * _octets(part.stop - part.start) * sum(gate_planes(parties, width, _decision(part.stop - part.start)))
        for part in blocks(number)
    )


def kept_bytes(number: int, parties: int, width: int) -> int:
    """Bytes that one of the three has in memory at once, about."""
    return _KEPT * ands(min(number, 2 * BLOCK), parties, width) // 8


def _decision(number: int) -> Callable[[Shares, Shares], list[Circuit[Any]]]:
    return partial(decision, threshold=1, few=number <= FEW)


def _checked_traffic(
    traffic: Traffic,
    holders: Holders3,
    *,
    number: int,
    width: int,
    build: Callable[[Shares, Shares], list[Circuit[Any]]],
) -> None:
    octets = _octets(number)
    for dealer in traffic.parties:
        full = sent_in_full(traffic.parties, holders, dealer)
        for place, holder in enumerate(holders):
            has_full = full in (place, (place + 1) % 3)
            in_full = width * octets * has_full
            traffic.send(dealer, holder, 3 * COMMITMENT_BYTES + 2 * _KEY_BYTES + _SIGNATURE_BYTES, messages=4)
            traffic.send(dealer, holder, in_full, messages=has_full)
    steps = gate_planes(len(traffic.parties), width, build)
    size = octets * sum(steps)
    bucket, unit, spare = bucket_size(size), unit_size(size), spare_size(size)
    filled = -size % unit
    for place, holder in enumerate(holders):
        before, after = holders[place - 1], holders[(place + 1) % 3]
        traffic.send(holder, holders, _HEARD_DEALING_BYTES * (len(traffic.parties) - 2))
        traffic.send(holder, holders, COMMITMENT_BYTES + _SIGNATURE_BYTES, messages=2)
        traffic.send(holder, holders, COIN_BYTES + _HEARD_COIN_BYTES + _SIGNATURE_BYTES, messages=2)
        traffic.send(holder, before, size * (1 + bucket) + spare, messages=len(steps))
        traffic.send(holder, after, 2 * (bucket * (size + filled)) + 3 * bucket * unit)
        traffic.send(holder, before, DIGEST_BYTES)
        traffic.send(holder, holders, DIGEST_BYTES)
    traffic.rounds += 1 + len(steps) + 3


def _octets(number: int) -> int:
    return -(-number // 8)
