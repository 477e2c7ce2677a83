"""The hash over what was said on a lane: equal at both ends, as far as it has been read."""

from __future__ import annotations

from typing import Any

import numpy as np

from link.encoding.chunks import CHUNK_BYTES
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages
from tests.world import run_parties

A, B = "a", "b"


def heads_of(contents: list[bytes], *, seed: int = 0) -> tuple[list[bytes], list[bytes]]:
    """The sender's after each array, and the reader's, which begins after all of them have arrived."""

    async def sending(session: Session) -> list[bytes]:
        lane, found = session.lane("lane"), []
        for data in contents:
            await lane.send_array(B, EncryptedMessages, np.frombuffer(data, np.uint8))
            found.append(lane.head_sent(B))
        await session.lane("over").send(B, EncryptedMessages())
        return found

    async def reading(session: Session) -> list[bytes]:
        await session.lane("over").recv(A, EncryptedMessages)
        lane, found = session.lane("lane"), []
        for data in contents:
            await lane.recv_array(A, EncryptedMessages, np.uint8, (len(data),))
            found.append(lane.head_read(A))
        return found

    out: dict[str, Any] = run_parties([A, B], {A: sending, B: reading}, seed=seed)
    return out[A], out[B]


def test_heads_are_those_of_what_has_been_read_though_more_has_arrived() -> None:
    sent, read = heads_of([b"x", bytes(CHUNK_BYTES + 1), b"x"])
    assert sent == read
    assert len(set(sent)) == 3


def test_heads_are_of_the_session_and_of_every_byte() -> None:
    runs = [heads_of([b"xy"], seed=0), heads_of([b"xz"], seed=0), heads_of([b"xy"], seed=1)]
    assert len({sent[0] for sent, _ in runs}) == 3
