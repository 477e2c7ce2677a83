"""Values that are opened piece by piece: the frames and the record of opening them at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from link.disclosure import Declared, Opened
from link.errors import UndeclaredDisclosure
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.world import run_parties

Rows = NDArray[np.uint8]
PARTIES = ("north", "south")
DECLARED = [Declared("reports", frozenset(PARTIES), "rows of bytes", 1_000, "once")]


async def cut(rows: Rows, size: int) -> AsyncIterator[Rows]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def run(send: Callable[[Session], object], number: int, width: int) -> tuple[Rows, list[Opened], list[bytes]]:
    """What the receiver gets in pieces, the sender's record, and the frames."""
    frames: list[bytes] = []
    record: list[Opened] = []

    async def north(session: Session) -> Rows:
        await send(session)  # type: ignore[misc]
        record.extend(session.ledger.record)
        return np.empty((0, width), np.uint8)

    async def south(session: Session) -> Rows:
        pieces = [each async for each in session.receive_opened_pieces("north", "reports", number, width)]
        return np.concatenate([np.empty((0, width), np.uint8), *pieces])

    def observe(frame: Frame) -> None:
        if frame.sender == "north":
            frames.append(frame.body)

    found = run_parties(PARTIES, {"north": north, "south": south}, declared=DECLARED, observe=observe)
    return found["south"], record, frames[1:]  # the first greets


@pytest.mark.parametrize("number", [0, 1, 20, 21, 200])
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_pieces_are_what_would_be_opened_at_once(number: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("link.encoding.chunks.CHUNK_BYTES", 100)
    rows = np.arange(5 * number, dtype=np.int64).astype(np.uint8).reshape(number, 5)
    at_once = run(lambda session: session.open("reports", rows), number, 5)
    in_pieces = run(lambda session: session.open_pieces("reports", cut(rows, size), number, "south"), number, 5)
    assert at_once[0].tolist() == in_pieces[0].tolist() == rows.tolist()
    assert at_once[1] == in_pieces[1]
    assert at_once[2] == in_pieces[2]


def test_what_is_not_declared_does_not_leave() -> None:
    rows = np.zeros((1_001, 5), np.uint8)
    with pytest.raises(UndeclaredDisclosure):
        run(lambda session: session.open_pieces("reports", cut(rows, 10), 1_001, "south"), 1_001, 5)


@pytest.mark.parametrize(("announced", "expected"), [(9, 9), (11, 11)])
def test_another_number_than_announced_is_refused(announced: int, expected: int) -> None:
    rows = np.zeros((10, 5), np.uint8)
    with pytest.raises(ValueError, match="were announced"):
        run(lambda session: session.open_pieces("reports", cut(rows, 3), announced, "south"), expected, 5)


def test_fewer_bytes_than_rows_take_are_refused() -> None:
    rows = np.zeros((10, 5), np.uint8)
    with fails("E402"):
        run(lambda session: session.open("reports", rows), 10, 6)
