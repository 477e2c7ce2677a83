"""What deciding among three costs where one may deviate; see `verified_sums`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.and_proofs import (
    COMBINATIONS,
    HASH_BYTES,
    SEED_BYTES,
    fingerprint_bytes,
    proof_bytes,
    row_count,
    sums_bytes,
)
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES
from crypto.protocols.replicated.dealing import sent_in_full
from crypto.protocols.replicated.evidence import COMMITMENT_BYTES
from crypto.protocols.replicated.verified_or import or_blocks, or_planes
from crypto.protocols.replicated.verified_sums import BLOCK, FEW, blocks, dealt_planes, decision_planes
from crypto.protocols.replicated.verified_total import WORD_BYTES, dealt_of_number, total_planes
from crypto.protocols.replicated.zero_checks import told_bytes
from link.traffic import Traffic

_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 72
_HEARD_DEALING_BYTES: Final = 3 * COMMITMENT_BYTES + _SIGNATURE_BYTES + 3 * 2 * DIGEST_BYTES  # with hashes of 3 frames
KEPT: Final = 25  # bytes that a byte of ANDs takes, with masks and proofs, while it is checked; measured


def total_traffic(traffic: Traffic, holders: Holders3, *, width: int) -> None:
    """Enters `verified_total.opened_total`."""
    parties = len(traffic.parties)
    steps = total_planes(parties, width)
    checked_traffic(traffic, holders, number=1, width=dealt_of_number(width), steps=steps, zeros=parties)
    _components_traffic(traffic, holders, traffic.parties, WORD_BYTES)


def decided_traffic(traffic: Traffic, holders: Holders3, *, number: int, width: int) -> None:
    """Enters `verified_sums.decided`."""
    begun = longest = traffic.rounds
    for part in blocks(number):
        traffic.rounds, size = begun, part.stop - part.start
        steps = decision_planes(len(traffic.parties), width, size <= FEW)
        dealt, parties = dealt_planes(width), len(traffic.parties)
        checked_traffic(traffic, holders, number=size, width=dealt, steps=steps, zeros=parties)
        longest = max(longest, traffic.rounds)
    traffic.rounds = longest


def opened_traffic(traffic: Traffic, holders: Holders3, to: tuple[str, ...], *, number: int, width: int) -> None:
    """Enters `crosschecks.opened`; 1 round."""
    _components_traffic(traffic, holders, to, width * _octets(number))


def _components_traffic(traffic: Traffic, holders: Holders3, to: tuple[str, ...], size: int) -> None:
    for holder in holders:
        traffic.send(holder, [name for name in to if name in holders], size)
        traffic.send(holder, [name for name in to if name not in holders], 2 * size)
    traffic.rounds += 1


def or_traffic(traffic: Traffic, holders: Holders3, number: int) -> None:
    """Enters `verified_or.verified_or`."""
    for part in or_blocks(number):
        size = part.stop - part.start
        checked_traffic(traffic, holders, number=size, width=1, steps=or_planes(len(traffic.parties)))
        opened_traffic(traffic, holders, traffic.parties, number=size, width=1)


def heard_traffic(traffic: Traffic, messages: int) -> None:
    """Enters `broadcasts.compare_heard`: 1 round."""
    for party in traffic.parties:
        traffic.send(party, traffic.parties, messages * DIGEST_BYTES)
    traffic.rounds += 1


def ands(number: int, parties: int, width: int) -> int:
    """ANDs of `verified_sums.decided`, with those that fill up bytes."""
    sizes = [part.stop - part.start for part in blocks(number)]
    return sum(8 * _octets(size) * sum(decision_planes(parties, width, size <= FEW)) for size in sizes)


def kept_bytes(number: int, parties: int, width: int) -> int:
    """Bytes that one of the three has in memory at once, about."""
    return KEPT * ands(min(number, 2 * BLOCK), parties, width) // 8


def checked_traffic(
    traffic: Traffic, holders: Holders3, *, number: int, width: int, steps: Sequence[int], zeros: int = 0
) -> None:
    """Enters `verified_sums.checked`: planes of ANDs in each step, and how many shares are shown to be of zeros."""
    octets = _octets(number)
    dealt_traffic(traffic, holders, dict.fromkeys(traffic.parties, width), octets)
    proved_traffic(traffic, holders, [octets * planes for planes in steps], zeros=zeros)
    traffic.rounds -= 1  # what was dealt is compared while ANDs are taken


def dealt_traffic(traffic: Traffic, holders: Holders3, widths: Mapping[str, int], octets: int) -> None:
    """Enters `dealing.dealt` and `compared`, of so many planes of each party: 2 rounds."""
    for dealer, width in widths.items():
        full = sent_in_full(traffic.parties, holders, dealer)
        for place, holder in enumerate(holders):
            has_full = full in (place, (place + 1) % 3)
            in_full = width * octets * has_full
            traffic.send(dealer, holder, 3 * COMMITMENT_BYTES + 2 * _KEY_BYTES + _SIGNATURE_BYTES, messages=4)
            traffic.send(dealer, holder, in_full, messages=has_full)
    for holder in holders:
        traffic.send(holder, holders, _HEARD_DEALING_BYTES * (len(traffic.parties) - 2))
    traffic.rounds += 2


def proved_traffic(traffic: Traffic, holders: Holders3, steps: Sequence[int], *, zeros: int = 0) -> None:
    """Enters `verified_ands.evaluated` and `check`: bytes of ANDs in each step; one round for each and two more."""
    size = sum(steps)
    rows = row_count(size)
    for place, holder in enumerate(holders):
        before, after = holders[place - 1], holders[(place + 1) % 3]
        traffic.send(holder, before, size, messages=len(steps))
        traffic.send(holder, before, proof_bytes(rows))
        traffic.send(holder, after, SEED_BYTES + fingerprint_bytes(rows))
        traffic.send(holder, before, SEED_BYTES + DIGEST_BYTES + COMBINATIONS * HASH_BYTES)
        traffic.send(holder, before, sums_bytes(size, rows))
        traffic.send(holder, holders, SEED_BYTES + told_bytes(zeros))
    traffic.rounds += len(steps) + 2


def _octets(number: int) -> int:
    return -(-number // 8)
