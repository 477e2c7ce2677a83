"""Oblivious transfer and computing on shares, two parties in one process: `python examples/oblivious_transfer.py`.

Ada offers messages; Ben takes some, and Ada does not learn which. Then they make a hundred thousand transfers out of
128, compare shared numbers with a threshold, and count the rows that both of them have marked.

In a job the two parties are processes of two organisations, and `Session` talks over gRPC under mutual TLS; the
functions that are called here are the same.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import numpy as np

from crypto.params import STANDARD_128
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.multiplication import dot_product
from crypto.protocols.comparison.shared_bits import open_bits, open_values
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.oblivious_transfer import (
    receive_k_of_n,
    receive_one_of_n,
    receive_one_of_two,
    send_k_of_n,
    send_one_of_n,
    send_one_of_two,
)
from crypto.protocols.transfers.ot_extension import fill_up, receive_random, send_random
from link.core import Terms
from link.disclosure import Declared
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.memory import Hub

ADA, BEN = PARTIES = ("ada", "ben")
PAIRS = [(b"left", b"right"), (b"heads", b"tails")]
MESSAGES = [b"zero", b"one", b"two", b"three", b"four"]
TRANSFERS = 100_000

# Nothing becomes public that is not declared: label, receivers, what, how many, when.
DECLARED = [
    Declared("reaches", frozenset(PARTIES), "which numbers reach 100", 4, "after the comparison"),
    Declared("both", frozenset(PARTIES), "rows that both have marked", 1, "after the dot product"),
]


async def ada(session: Session) -> None:
    """Ada's part: the sender's."""
    await send_one_of_two(session.lane("one of two"), BEN, PAIRS)
    await send_one_of_n(session.lane("one of five"), BEN, MESSAGES)
    await send_k_of_n(session.lane("two of five"), BEN, MESSAGES, 2)

    parties = TwoParty(session.lane("seeds"), PARTIES)  # agrees upon seeds when they are first needed
    lane = session.lane("extension")
    both = [pair async for pair in send_random(lane, BEN, await parties.sending(lane), TRANSFERS)]
    print(f"ada has {sum(len(zero) for zero, _ in both):,} pairs of random messages")

    # Shares of 99, 100, 250 and 0, as a secure sum leaves them: Ben's are the rest modulo 2^64.
    mine = AdditiveShare(np.array([2**64 - 1, 60, 200, 12], np.uint64), ADA, PARTIES)
    await compare(session, parties, mine)
    await count_common(session, parties, np.arange(1000) % 2 == 0)


async def ben(session: Session) -> None:
    """Ben's part: the receiver's."""
    taken = await receive_one_of_two(session.lane("one of two"), ADA, [1, 0])
    print("of two each, ben took", *(message.decode() for message in taken))
    print("of five, ben took", (await receive_one_of_n(session.lane("one of five"), ADA, 3, len(MESSAGES))).decode())
    taken = await receive_k_of_n(session.lane("two of five"), ADA, [4, 0], len(MESSAGES))
    print("of five, ben took", *(message.decode() for message in taken))

    parties = TwoParty(session.lane("seeds"), PARTIES)
    lane = session.lane("extension")
    choices = fill_up(Randomness.from_os().uint64(TRANSFERS) % 2 == 1)
    chosen = [rows async for rows in receive_random(lane, ADA, await parties.receiving(lane), choices)]
    print(f"ben has {sum(map(len, chosen)):,} of them, one a pair")

    mine = AdditiveShare(np.array([100, 40, 50, 2**64 - 12], np.uint64), BEN, PARTIES)
    await compare(session, parties, mine)
    await count_common(session, parties, np.arange(1000) % 3 == 0)


async def compare(session: Session, parties: TwoParty, share: AdditiveShare) -> None:
    """Which numbers reach 100; the numbers, all at most 1,000, stay shared."""
    bits = await at_least(session.lane("comparison"), parties, share, 100, width_for(1000))
    opened = await open_bits(session, bits, label="reaches", holders=PARTIES, number=share.size)
    print(f"{session.me} learns which numbers reach 100: {opened}")


async def count_common(session: Session, parties: TwoParty, marked: np.ndarray) -> None:
    """How many rows both have marked."""
    shared = await dot_product(session.lane("dot product"), parties, marked)
    opened = await open_values(session, shared, label="both", holders=PARTIES, number=1)
    print(f"{session.me} learns how many rows both have marked: {opened}")


async def main() -> None:
    """Both parties beside each other, joined by a hub in memory."""
    hub, executor = Hub(), ThreadExecutor()
    job = hashlib.sha256(b"example").digest()

    async def run(name: str, part: Callable[[Session], Awaitable[None]]) -> None:
        session = await Session.establish(
            Terms(job, 1, job, PARTIES, STANDARD_128.suite),
            name,
            hub.endpoint(name),
            random=Randomness.from_os(),
            executor=executor,
            declared=DECLARED,
        )
        await part(session)

    try:
        await asyncio.gather(run(ADA, ada), run(BEN, ben))
    finally:
        executor.close()


if __name__ == "__main__":
    asyncio.run(main())
