"""A programmable oblivious pseudorandom function: at points that the sender has chosen the receiver gets its values.

Both evaluate `oprf`'s function F, the receiver at its points y, the sender at the points x that it programs:
    0  values   as in `oprf`
    1  store    the sender sends a store of F(x) ⊕ value for each x (`okvs`); the receiver reads it at y and adds F(y)
At a point of both that gives the sender's value; at all others F(y) is as good as random, and so is what comes out.

Rounds: 1 beside those of `oprf`. Bytes: 8·w for each row of the second store, for values of w words.

Adversary: receivers may deviate, as in `oprf`: they get the store after the check. Senders are semi-honest: nothing
    bounds the points that their stores hold. The receiver's points are hidden as in `oprf`. The store hides which
    points are programmed, and how many, since F there and all rows that hold nothing are as good as uniform (`okvs`,
    obliviousness), where the values look random to the receiver: which of its points the sender has programmed shows
    only if values do. Collusion: does not apply, two parties.
Leakage: both capacities.

Source: Kolesnikov, Matania, Pinkas, Rosulek and Trieu, "Practical Multi-party Private Set Intersection from
Symmetric-Key Techniques", CCS 2017, section 4, with a store in place of its polynomials and tables (Garimella, Pinkas,
Rosulek, Trieu and Yanai, CRYPTO 2021, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.groups.point_hash import Points, Words
from crypto.primitives.okvs import Layout, filled, read, solved
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.transfers.oprf import (
    Packed,
    Parts,
    check_seed,
    receive_values,
    send_values,
)
from link.randomness import RandomStream
from link.session import Session
from protos.v1.oblivious_prf_pb2 import ProgrammedRows, StoreSeed

FUNCTION: Final = "function"  # the lane of F


async def receive_programmed(
    session: Session,
    peer: str,
    seeds: SenderSeeds,
    points: Points,
    capacities: tuple[int, int],
    words: int = 1,
) -> Words:
    """The receiver's part: what the sender has programmed at the receiver's points; elsewhere pseudorandom words.

    Args:
        session: As for `receive_values`.
        peer: As for `receive_values`.
        seeds: As for `receive_values`.
        points: As for `receive_values`.
        capacities: Of the receiver's points and of the sender's, public.
        words: Of 64 bits, in a value; up to 4.

    Returns:
        Shape (n, words).

    Raises:
        MalformedMessage: The sender's stores have another size.
    """
    own, programmed = capacities
    values = await receive_values(session.lane(FUNCTION), peer, seeds, points, own, 8 * words)
    return await add_programmed(session, peer, points, values, programmed)


async def add_programmed(session: Session, peer: str, points: Points, values: Packed, capacity: int) -> Words:
    """The receiver's second step: adds to the function's values what the sender's stores hold at its points.

    Args:
        session: As for `receive_programmed`.
        peer: As for `receive_programmed`.
        points: As for `receive_programmed`.
        values: The function's, shape (n, 8·words).
        capacity: Of the sender's points.
    """
    parts = Parts.of(capacity)
    result = values.view("<u8")
    for numbers in parts.numbers(points):
        store = await receive_store(session, peer, parts.layout, result.shape[1])  # <- 3
        result[numbers] ^= await session.compute(store.at, points[numbers])
    return result


async def send_programmed(
    session: Session,
    peer: str,
    seeds: ReceiverSeeds,
    points: Points,
    values: Words,
    capacities: tuple[int, int],
) -> None:
    """The sender's part.

    Args:
        session: As for `part_keys`.
        peer: As for `part_keys`.
        seeds: As for `part_keys`.
        points: Different ones, at most as many as the second capacity, shape (n, 2).
        values: What the receiver gets at each of them, shape (n, words). Only if they look random to the receiver does
            it not learn at which of its points there is one.
        capacities: The receiver's own.

    Raises:
        ValueError: There are more points than the capacity.
    """
    own, programmed = capacities
    parts, random, words = Parts.of(programmed), session.randomness("store"), values.shape[1]
    by_part = parts.stored(points)
    found = await send_values(session.lane(FUNCTION), peer, seeds, points, own, 8 * words)
    differences = found.view("<u8") ^ values
    for numbers in by_part:
        await send_store(session, peer, parts.layout, points[numbers], differences[numbers], random)  # -> 3


# -- one part ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Store:
    """What a sender has programmed of one part, masked by F.

    Attributes:
        layout: Of the store.
        seed: Of the store.
        rows: Shape (layout.rows, words).
    """

    layout: Layout
    seed: bytes
    rows: Words

    def at(self, points: Points) -> Words:
        """What points of the part read, shape (n, words); with F it is the sender's value."""
        return read(self.layout, self.rows, self.layout.places(points, self.seed))


async def receive_store(session: Session, peer: str, layout: Layout, words: int) -> Store:
    """The receiver's second step for one part.

    Args:
        session: As for `receive_programmed`.
        peer: As for `receive_programmed`.
        layout: Of the part, public.
        words: Of 64 bits, in a value.

    Raises:
        MalformedMessage: The sender's store has another size.
    """
    seed = (await session.recv(peer, StoreSeed, check_seed)).seed  # <- 3
    rows = await session.recv_array(peer, ProgrammedRows, np.uint64, (layout.rows, words))  # <- 3
    return Store(layout, seed, rows)


async def send_store(
    session: Session, peer: str, layout: Layout, points: Points, masked: Words, random: RandomStream
) -> None:
    """The sender's second step for one part.

    Args:
        session: As for `send_programmed`.
        peer: As for `send_programmed`.
        layout: Of the part, public.
        points: Those of the part that are programmed, shape (n, 2).
        masked: At each of them the value and F, added up, shape (n, words).
        random: Of the stores of all parts.
    """

    def store() -> tuple[bytes, Words]:
        seed, solution = solved(layout, points, random)
        return seed, filled(solution, masked, random)

    seed, rows = await session.compute(store)
    await session.send(peer, StoreSeed(seed=seed))  # -> 3
    await session.send_array(peer, ProgrammedRows, rows)  # -> 3
