"""Packed results go an hour after the end of their job, all by one timer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from party.jobs.endings.tables import KEEP_S, ReleasedTables

JOBS = [bytes([number]) * 16 for number in range(5)]


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def _until(gone: Path) -> None:
    for _ in range(3000):
        if not os.path.exists(gone):  # noqa: ASYNC240
            return
        await asyncio.sleep(0.01)


def test_tables_go_when_they_are_due(tmp_path: Path) -> None:
    tables = ReleasedTables(tmp_path)
    for job in JOBS:
        tables.write(job, job)

    async def forget() -> None:
        tables.forget_later(JOBS[0])
        tables.forget_later(JOBS[1], 0.1)  # due before what is waited for
        tables.forget_later(JOBS[2], 0.0)
        tables.forget_later(JOBS[3], 0.0)
        await _until(tmp_path / JOBS[1].hex())

    asyncio.run(forget())
    assert _left(tmp_path) == {JOBS[0].hex(), JOBS[4].hex()}
    assert tables.read(JOBS[0]) == JOBS[0]
    assert tables.read(JOBS[1]) is None


def test_one_timer_waits_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ReleasedTables(tmp_path)
    waiting: list[asyncio.TimerHandle] = []

    async def forget() -> None:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def recorded(when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
            waiting.append(call_at(when, callback))
            return waiting[-1]

        monkeypatch.setattr(loop, "call_at", recorded)
        for job in JOBS:
            tables.forget_later(job)

    asyncio.run(forget())
    assert sum(not each.cancelled() for each in waiting) == 1


def test_after_a_restart_the_rest_of_the_hour_is_kept(tmp_path: Path) -> None:
    tables = ReleasedTables(tmp_path, now=lambda: 10_000.0)
    for job, written in zip(JOBS, (10_000.0, 10_000.1 - KEEP_S, 10_000.0 - KEEP_S, 0.0, 10_000.0), strict=True):
        tables.write(job, job)
        os.utime(tmp_path / job.hex(), (written, written))

    async def recover() -> None:
        tables.recover()
        assert _left(tmp_path) == {JOBS[place].hex() for place in (0, 1, 4)}
        await _until(tmp_path / JOBS[1].hex())

    asyncio.run(recover())
    assert _left(tmp_path) == {JOBS[0].hex(), JOBS[4].hex()}
