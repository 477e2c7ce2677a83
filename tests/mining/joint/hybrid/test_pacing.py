"""Flow of reports: a sender is never more than two windows ahead of its receiver, whatever the receiver's pace."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from crypto.primitives.sealed import OVERHEAD, Rows
from link.encoding.chunks import CHUNK_BYTES
from link.session import Session
from mining.joint.hybrid import pacing, shuffle
from mining.joint.hybrid.disclosure import openings
from mining.joint.hybrid.pacing import Pace, paced, windows_told
from mining.joint.hybrid.shuffle import LABEL, Phase, agree_on_route, collect_shuffled, send_reports, shuffle_first
from mining.joint.hybrid.spool_limits import SpoolLimits
from protos.v1.hybrid_pb2 import SealedRows, WindowTaken
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.mining.joint.hybrid.hybrid_world import PARTIES, TASK, shuffled
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

CHUNK, MANY = 16, 400_000


def made(number: int, size: int) -> Rows:
    return np.random.default_rng(number).integers(0, 256, (number, size), np.uint8)


async def cut(rows: Rows, size: int) -> AsyncIterator[Rows]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@pytest.mark.parametrize(("number", "told"), [(0, 0), (1, 0), (32, 0), (33, 1), (48, 1), (49, 2), (160, 8)])
@pytest.mark.parametrize("piece", [1, 7, 16, 100])
def test_a_sender_waits_for_its_receiver(monkeypatch: pytest.MonkeyPatch, number: int, told: int, piece: int) -> None:
    """Windows of 16 reports: of a receiver that has taken w of them, the sender has sent w + 2 at most."""
    monkeypatch.setattr(pacing, "CHUNK", CHUNK)
    monkeypatch.setattr(pacing, "WINDOW", 1)
    reports, sent, taken, messages = made(number, 5), 0, 0, []

    async def role(session: Session) -> Rows | None:
        nonlocal sent, taken
        if session.me == "south":
            async for rows in paced(session, "north", cut(reports, piece), 5):
                sent += len(rows)
                assert sent <= (taken // CHUNK + 2) * CHUNK
                await session.send("north", SealedRows(data=rows.tobytes()))
            return None
        if session.me != "north":
            return None
        pace, came = Pace(session, "south", number, 5), [reports[:0]]
        while taken < number:
            came.append(np.frombuffer((await session.recv("south", SealedRows)).data, np.uint8).reshape(-1, 5))
            await asyncio.sleep(0)
            taken += len(came[-1])
            await pace.took(len(came[-1]))
        return np.concatenate(came)

    def observe(frame: Frame) -> None:
        if frame.type == WindowTaken.DESCRIPTOR.full_name:
            messages.append(frame)

    got = run_parties(PARTIES, role, observe=observe)["north"]
    assert got is not None
    assert np.array_equal(got, reports)
    assert len(messages) == told == windows_told(number, 5)


def local(parts: Callable[[Session, Rows], AsyncIterator[Rows]], ahead: int) -> int:
    """How many reports a slow analyst gets of south, which has many."""
    number, size = MANY, 32

    async def role(session: Session) -> int:
        lane, got = session.lane("phase"), 0
        if session.me == "south":
            await lane.open_pieces(LABEL, parts(lane, made(number, size)), number, "north")
        if session.me == "north":
            pace = Pace(lane, "south", number, size)
            async for rows in pace.each(lane.receive_opened_pieces("south", LABEL, number, size)):
                await asyncio.sleep(0.002)
                got += len(rows)
        return got

    declared = openings(TASK, PARTIES)
    return run_parties(PARTIES, role, declared=declared, ahead_bytes={"north": ahead})["north"]


def test_a_slow_analyst_needs_no_memory_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """12.8 MB of reports pass an analyst that has room for 5 MiB of them, in windows of 2; without pace they do not."""
    monkeypatch.setattr(pacing, "WINDOW", 2 * CHUNK_BYTES)
    room = 5 * CHUNK_BYTES
    assert local(lambda lane, rows: paced(lane, "north", cut(rows, 1_000), 32), room) == MANY
    with fails("E403"):
        local(lambda _, rows: cut(rows, 1_000), room)


def through(
    limits: SpoolLimits, number: int, frames: list[tuple[str, str, int]] | None = None, seed: int = 0
) -> list[bytes]:
    """What the analyst gets of so many reports of each other party."""
    task, phase = shuffled(("east",)), Phase(0, {"north": 1, "south": number, "east": number}, 4, 1)

    async def role(session: Session) -> list[bytes]:
        route, lane = await agree_on_route(session.lane("route"), task, limits), session.lane("phase")
        came: list[bytes] = []
        if session.me == "north":

            async def take(rows: Rows) -> None:
                came.extend(row.tobytes() for row in rows)

            assert await collect_shuffled(lane, route, phase, take) == 0
        elif session.me == "east":
            await shuffle_first(lane, route, phase, made(number, 4))
        else:
            await send_reports(lane, route, phase, made(number, 4) ^ 1)
        return came

    def observe(frame: Frame) -> None:
        if frames is not None and frame.lane.startswith("/phase"):
            frames.append((frame.sender, frame.type, len(frame.body)))

    return run_parties(PARTIES, role, declared=openings(task, PARTIES), seed=seed, observe=observe)["north"]


def test_the_disk_changes_nothing_of_what_others_see(tmp_path: Path) -> None:
    """The same messages of the same sizes, and the same multiset, as of a shuffler that keeps reports in memory."""
    memory, disk = list[tuple[str, str, int]](), list[tuple[str, str, int]]()
    one = through(SpoolLimits(), 500, memory)
    other = through(SpoolLimits(1 << 12, tmp_path), 500, disk)
    assert sorted(one) == sorted(other)
    assert sorted(memory) == sorted(disk)
    assert not list(tmp_path.iterdir())


def test_windows_and_the_disk_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many windows on each hop, and a shuffler without memory."""
    monkeypatch.setattr(pacing, "CHUNK", CHUNK)
    monkeypatch.setattr(shuffle, "CHUNK", CHUNK)
    monkeypatch.setattr(pacing, "window_of", lambda size: CHUNK if size > 4 + OVERHEAD else CHUNK_BYTES)
    got = through(SpoolLimits(1 << 12, tmp_path), 300)
    assert sorted(got) == sorted(row.tobytes() for rows in (made(300, 4), made(300, 4) ^ 1) for row in rows)


def test_a_shuffler_without_room_ends_the_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with fails("E103") as error:
        through(SpoolLimits(1 << 12, tmp_path), 500)
    assert str(tmp_path) in error.value.message
