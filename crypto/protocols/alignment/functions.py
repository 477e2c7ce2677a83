"""The pseudorandom functions of an alignment: for a pair of parties those whose key one has and the other evaluates."""

from __future__ import annotations

from collections.abc import Sequence

from crypto.primitives.groups.point_hash import Points, Words
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, prepare_receiving, prepare_sending
from crypto.protocols.transfers.oprf import KeyHolder
from crypto.protocols.transfers.programmable_oprf import receive_all_programmed, send_programmed
from link.session import Session
from link.tasks import together


async def key_holders(lane: Session, peers: Sequence[str]) -> Sequence[KeyHolder]:
    """The others as those who hold the keys of functions that this party evaluates."""

    async def holder(peer: str) -> KeyHolder:
        hop = _of_key(lane, peer, lane.me)
        return KeyHolder(
            hop.lane("values"), peer, await prepare_sending(hop.lane("seeds"), peer, field_bits=1, symbol_bits=1)
        )

    return await together(map(holder, peers))


async def own_key(lane: Session, evaluator: str) -> tuple[Session, ReceiverSeeds]:
    """The lane and the seeds of the function whose key this party has."""
    hop = _of_key(lane, lane.me, evaluator)
    seeds = await prepare_receiving(hop.lane("seeds"), evaluator, field_bits=1, symbol_bits=1)
    return hop.lane("values"), seeds


async def collect(
    lane: Session, others: Sequence[str], points: Points, capacities: tuple[int, int], words: int = 1
) -> Sequence[Words]:
    """The merger's part: of each other party, what that one has programmed at the merger's points.

    Args:
        lane: The alignment's.
        others: All parties but the merger.
        points: Shape (n, 2).
        capacities: Of the merger's points, and of each other's, public.
        words: Of a value.

    Returns:
        For each other, shape (n, words).
    """
    return await receive_all_programmed(lane, await key_holders(lane, others), points, capacities, words)


async def program(lane: Session, merger: str, points: Points, values: Words, capacities: tuple[int, int]) -> None:
    """Every other party's part of `collect`.

    Args:
        lane: The alignment's.
        merger: The one that gets the values.
        points: Shape (n, 2).
        values: At each of them, shape (n, words); they look random to the merger.
        capacities: As for `collect`.
    """
    hop, seeds = await own_key(lane, merger)
    await send_programmed(hop, merger, seeds, points, values, capacities)


def _of_key(lane: Session, holder: str, evaluator: str) -> Session:
    """The lane of the function whose key one has and which the other evaluates."""
    return lane.among(f"{holder} for {evaluator}", (holder, evaluator))
