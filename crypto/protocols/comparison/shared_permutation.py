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

Rounds: 2, since all of the owner's choices leave beforehand. Output: additive shares in the word of the rows.
Bytes: for each of the (2·⌈log2 n⌉ − 1)·2^(⌈log2 n⌉ − 1) switches ⌈128/k⌉/8 from the owner, and a row from the other.
Adversary: semi-honest. The owner gets rows under the pads of transfers, uniform to it; the other gets nothing but the
    owner's choices under pads. Leakage: numbers of rows and of words.

Source: Mohassel and Sadeghian, "How to Hide Circuits in MPC: An Efficient Framework for Private Function Evaluation",
EUROCRYPT 2013, section 3.1 (oblivious evaluation of a switching network); vector transfers as in their module.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.permutation_network import (
    Order,
    Switches,
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
    batches,
    in_blocks,
    receive_vectors,
    send_vectors,
)
from link.session import Session
from link.tasks import together

LAYERS_AT_ONCE: Final = 8  # of which the owner keeps what it chose and what it got


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
    work = _work(len(passed), width, own.dtype)
    if order is None:
        passed[:number] = own
        await _pass_rows(session, parties, passed, work)
        return AdditiveShare(passed[:number].reshape(-1), parties.me, parties.holders)
    if not np.array_equal(np.sort(order), np.arange(number)):
        raise ValueError(f"an order of {number} rows is a permutation of their places")
    whole = np.concatenate([order, np.arange(number, len(passed))])
    switches = await session.compute(switches_for, whole)
    await _pass_choices(session, parties, passed, work, switches)
    return AdditiveShare((passed[:number] + own[order]).reshape(-1), parties.me, parties.holders)


async def _pass_rows(session: Session, parties: TwoParty, rows: Words, work: list[Batch]) -> None:
    """The other's rows through the network, in place; what it keeps of them comes out."""
    for number, (upper, lower) in enumerate(pass_layers(rows)):
        lane = session.lane(f"layer {number}")
        apart, random = lower - upper, np.empty_like(upper)

        def correlations(segment: Segment, apart: Words = apart) -> list[Words]:
            start, stop = segment.rows
            return in_blocks(np.ascontiguousarray(apart[start:stop, _columns(segment)].T))

        def keep(segment: Segment, first: int, words: Words, random: Words = random) -> None:
            random[slice(*segment.rows), _columns(segment)][:, first : first + words.shape[1]] = words

        seeds = await parties.sending(lane)
        await send_vectors(lane, parties.peer, seeds, work, rows.dtype.type, correlations, keep)
        upper -= random
        lower += random


async def _pass_choices(
    session: Session, parties: TwoParty, rows: Words, work: list[Batch], switches: list[Switches]
) -> None:
    """The owner's switches; its parts of the other's rows come out in `rows`, which begin as zeros."""
    layers = layer_count(len(rows))
    passing = pass_layers(rows)
    for start in range(0, layers, LAYERS_AT_ONCE):
        numbers = range(start, min(start + LAYERS_AT_ONCE, layers))
        got = await together(
            _chosen(session.lane(f"layer {each}"), parties, rows.shape[1], rows.dtype, work, switches[each])
            for each in numbers
        )
        for number, chosen in zip(numbers, got, strict=True):
            upper, lower = next(passing)
            swapped = switches[number][:, None]
            ups, downs = np.where(swapped, lower, upper), np.where(swapped, upper, lower)
            upper[...], lower[...] = ups + chosen, downs - chosen
    for _ in passing:
        raise AssertionError("a network has no more layers")


async def _chosen(
    lane: Session, parties: TwoParty, width: int, word: np.dtype[np.unsignedinteger], work: list[Batch], bits: Switches
) -> Words:
    """What the owner gets of one layer: r + c·d, shape (switches, width)."""
    found: Words = np.empty((len(bits), width), word)
    own: NDArray[np.uint8] = bits.astype(np.uint8)

    def choices(segment: Segment) -> NDArray[np.uint8]:
        return own[slice(*segment.rows)]

    def keep(segment: Segment, first: int, words: Words) -> None:
        found[slice(*segment.rows), _columns(segment)][:, first : first + words.shape[1]] = words

    seeds = await parties.receiving(lane)
    await receive_vectors(lane, parties.peer, seeds, work, word.type, choices, keep)
    return found


def _work(size: int, width: int, word: np.dtype[np.unsignedinteger]) -> list[Batch]:
    """The transfers of one layer: a switch's row in parts, of which each rides on a transfer of its own."""
    widths = [min(MAX_WIDTH, width - start) for start in range(0, width, MAX_WIDTH)]
    return batches(size // 2, widths, word.type)


def _columns(segment: Segment) -> slice:
    start = segment.column * MAX_WIDTH
    return slice(start, start + segment.width)
