"""Shared rows put in an order that only one party knows: permute and share.

Two parties hold additive shares of n rows of words. One of them, the owner, has a permutation π; both get fresh shares
of the rows in the order of π. Row after row of pairs goes through the layers of a permutation network (`primitives.
permutation_network`), whose switches only the owner knows:

    1. the owner permutes its own share by itself
    2. the other's share q goes through the network. At a switch with bit c and inputs q₀, q₁ one transfer correlated by
       the whole row d = q₁ − q₀ gives the other −r, and the owner r + c·d. So
           q₀ + c·d = (q₀ − r) + (r + c·d),        q₁ − c·d = (q₁ + r) − (r + c·d),
       of which the other goes on with its parts q₀ − r and q₁ + r, and the owner with its own
    3. what both have at the end are shares of the other's rows in the order of π; the owner adds its own

Where each of two parties permutes once, nobody knows the order.

Rounds: those of `vector_transfers`: 2 where all switches fit `WINDOW` batches.
Output: additive shares in the word of the rows.
Bytes: for each of the (2·⌈log2 n⌉ − 1)·2^(⌈log2 n⌉ − 1) switches ⌈128/k⌉/8 from the owner, and a row from the other.
Adversary: semi-honest. The owner gets rows under the pads of transfers, uniform to it; the other gets nothing but the
    owner's choices under pads. Leakage: numbers of rows and of words.

Source: Mohassel and Sadeghian, "How to Hide Circuits in MPC: An Efficient Framework for Private Function Evaluation",
EUROCRYPT 2013, section 3.1 (oblivious evaluation of a switching network); vector transfers as in their module.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.permutation_network import (
    AT_ONCE,
    Order,
    Switches,
    are_swapped,
    layer_count,
    network_size,
    pass_layers,
    switches_for,
)
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.shared_bits import check_two_party
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.vector_transfers import (
    MAX_WIDTH,
    Batch,
    Segment,
    Word,
    in_blocks,
    packed,
    receive_vectors,
    send_vectors,
    stretches,
)
from link.session import Session


async def permute(
    session: Session, parties: TwoParty, rows: AdditiveShare, width: int, owner: str, order: Order | None
) -> AdditiveShare:
    """Shares of the rows in the owner's order; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        rows: Row after row, in words of 8, 16 or 32 bits.
        width: Words of a row; public.
        owner: The holder that knows the order.
        order: There, which row comes at each place, a permutation of 0 … n − 1; None at the other.

    Returns:
        Row after row.

    Raises:
        TypeError: The shares are of other holders.
        ValueError: The rows are no whole number of rows, or the order is none of so many.
        MalformedMessage: The peer's messages have another size: its rows differ.
    """
    check_two_party(parties, rows)
    own = rows.values.reshape(-1, width)
    number = len(own)
    if owner not in parties.holders or (order is not None) != (owner == parties.me):
        raise ValueError("the owner of an order, and nobody else, has one")
    passed = np.zeros((network_size(number), width), own.dtype)
    work = switch_work(number, width, own.dtype.type)
    if order is None:
        passed[:number] = own
        await _pass_rows(session, parties, passed, work)
        return AdditiveShare(passed[:number].reshape(-1), parties.me, parties.holders)
    if not _is_permutation(order, number):
        raise ValueError(f"an order of {number} rows is a permutation of their places")
    await _pass_choices(session, parties, passed, work, await session.compute(_switches, order, len(passed)))
    for start in range(0, number, AT_ONCE):
        part = slice(start, min(start + AT_ONCE, number))
        passed[part] += own[order[part]]
    return AdditiveShare(passed[:number].reshape(-1), parties.me, parties.holders)


def _is_permutation(order: Order, number: int) -> bool:
    if len(order) != number or not number:
        return len(order) == number
    if int(order.min()) < 0 or int(order.max()) >= number:
        return False
    met = np.zeros(number, np.bool_)
    for start in range(0, number, AT_ONCE):
        met[order[start : start + AT_ONCE]] = True
    return bool(met.all())


async def _pass_rows(session: Session, parties: TwoParty, rows: Words, work: list[Batch]) -> None:
    """The other's rows through the network, in place; what it keeps of them comes out."""
    passing = _Passing(rows)

    def correlations(segment: Segment) -> list[Words]:
        passing.to_layer_of(segment)
        upper, lower = passing.part(segment)
        return in_blocks(np.ascontiguousarray((lower - upper).T))

    def keep(segment: Segment, first: int, words: Words) -> None:
        upper, lower = (each[:, first : first + words.shape[1]] for each in passing.part(segment))
        upper -= words
        lower += words

    if work:
        await send_vectors(
            session, parties.peer, await parties.sending(session), work, rows.dtype.type, correlations, keep
        )


def _switches(order: Order, size: int) -> list[Switches]:
    """Of a network of so many rows, of which those behind the order's stay where they are."""
    return switches_for(_padded(order, size))


def _padded(order: Order, size: int) -> NDArray[np.uint32]:
    found = np.arange(size, dtype=np.uint32)
    found[: len(order)] = order
    return found


async def _pass_choices(
    session: Session, parties: TwoParty, rows: Words, work: list[Batch], switches: list[Switches]
) -> None:
    """The owner's switches; its parts of the other's rows come out in `rows`, which begin as zeros."""
    passing = _Passing(rows)

    def choices(segment: Segment) -> NDArray[np.uint8]:
        return are_swapped(switches[passing.layer_of(segment)], *segment.rows)

    def keep(segment: Segment, first: int, words: Words) -> None:
        passing.to_layer_of(segment)
        upper, lower = (each[:, first : first + words.shape[1]] for each in passing.part(segment))
        swapped = choices(segment)[:, None] == 1
        upper[...], lower[...] = np.where(swapped, lower, upper) + words, np.where(swapped, upper, lower) - words

    if work:
        await receive_vectors(
            session, parties.peer, await parties.receiving(session), work, rows.dtype.type, choices, keep
        )


class _Passing:
    """Rows on their way through the network, which come to a layer when its first segment does."""

    def __init__(self, rows: Words) -> None:
        self._widths, self._layers, self._layer = _widths(rows.shape[1]), pass_layers(rows), -1
        self._pairs: tuple[Words, Words] = rows[0::2], rows[1::2]

    def layer_of(self, segment: Segment) -> int:
        """The number of its layer."""
        return segment.column // len(self._widths)

    def to_layer_of(self, segment: Segment) -> None:
        """Called with segment after segment."""
        while self._layer < self.layer_of(segment):
            self._pairs, self._layer = next(self._layers), self._layer + 1

    def part(self, segment: Segment) -> tuple[Words, Words]:
        """The upper and the lower rows of the segment's pairs, its words of each."""
        start = segment.column % len(self._widths) * MAX_WIDTH
        upper, lower = (each[slice(*segment.rows), start : start + segment.width] for each in self._pairs)
        return upper, lower


def switch_work(rows: int, width: int, word: Word) -> list[Batch]:
    """All transfers of a network, layer after layer: a switch's row in parts, of which each rides on one of its own.

    Args:
        rows: That are permuted.
        width: Words of a row.
        word: Their type.
    """
    size, widths = network_size(rows), _widths(width)

    def segments() -> Iterator[Segment]:
        for layer in range(layer_count(size)):
            for stretch in stretches(size // 2):
                for part, each in enumerate(widths):
                    yield Segment(layer * len(widths) + part, stretch, each)

    return packed(segments(), word)


def _widths(width: int) -> list[int]:
    return [min(MAX_WIDTH, width - start) for start in range(0, width, MAX_WIDTH)]
