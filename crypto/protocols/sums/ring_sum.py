"""The classic ring sum, kept for comparison with the literature; jobs use `secure_sum`.

The starter adds a uniform mask to its vector and passes the result on; each party adds its own vector and passes it
on; back at the starter the mask comes off and the sum is opened to all.

Rounds: n + 1 (n hops and the opening). Output: the sum modulo 2^64, to all parties.

Adversary: semi-honest, and NO TWO PARTIES COLLUDE. The two neighbours of a party on the ring recover its vector by one
subtraction: what it sent less what it received. `secure_sum` withstands n − 2 colluders, in 1 or 2 rounds and with
less payload for long vectors; this protocol is here because papers on distributed mining build on it.
Leakage: the public m, and that the parties took part. Every party learns the sum. The starter learns it first.

Source: Clifton, Kantarcioglu, Vaidya, Lin and Zhu, "Tools for Privacy Preserving Distributed Data Mining", SIGKDD
Explorations 4(2), 2002, section 3.1, modulo 2^64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError
from link.session import Session
from protos.v1.secure_sum_pb2 import RunningSum


async def ring_sum(session: Session, values: NDArray[np.uint64], *, label: str) -> NDArray[np.uint64]:
    """Opens the sum of all parties' vectors to all parties, around the ring in the order of the job.

    Args:
        session: The lane to use.
        values: Shape (m,), uint64, m public and equal at all parties.
        label: A label of the job's statement, for at least m values.

    Returns:
        Shape (m,), the sum modulo 2^64.

    Raises:
        ConfigurationError: There are fewer than three parties.
        UndeclaredDisclosure: The statement does not allow the opening.
        MalformedMessage: A peer's vector has another length.
    """
    if values.dtype != np.uint64 or values.ndim != 1:
        raise ValueError(f"a sum is over uint64 vectors, not over {values.dtype} of shape {values.shape}")
    if len(session.parties) < 3:
        raise ConfigurationError("the ring sum needs at least three parties; choose the pairwise secure sum")
    starter = session.parties[0]
    return await (_start(session, values, label) if session.me == starter else _pass_on(session, values, label))


async def _start(session: Session, values: NDArray[np.uint64], label: str) -> NDArray[np.uint64]:
    following, preceding = session.parties[1], session.parties[-1]
    mask: NDArray[np.uint64] = session.randomness("ring mask").uint64(len(values))
    await session.send_array(following, RunningSum, values + mask)  # -> 1
    total: NDArray[np.uint64] = await session.recv_array(preceding, RunningSum, np.uint64, values.shape)  # <- n
    total -= mask
    await session.open(label, total)  # -> n + 1
    return total


async def _pass_on(session: Session, values: NDArray[np.uint64], label: str) -> NDArray[np.uint64]:
    parties = session.parties
    place = parties.index(session.me)
    following, preceding = parties[(place + 1) % len(parties)], parties[place - 1]
    total: NDArray[np.uint64] = await session.recv_array(preceding, RunningSum, np.uint64, values.shape)  # <- place
    total += values
    await session.send_array(following, RunningSum, total)  # -> place + 1
    return await session.receive_opened(parties[0], label, np.uint64, values.shape)  # <- n + 1
