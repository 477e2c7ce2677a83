"""A node says that it is well only where its disk takes what it writes."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from party.node import probe
from party.node.probe import Probe
from tests.party.nodes import Nodes, running


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_takes_what_is_written_is_well_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    assert asyncio.run(Probe(tmp_path).problem()) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("module", "name"), [(tempfile, "TemporaryFile"), (os, "fsync")])
def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    monkeypatch.setattr(module, name, full)
    assert "cannot be written (No space left on device)" in asyncio.run(Probe(tmp_path).problem())


def test_a_disk_that_hangs_is_told_in_time_and_holds_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ANSWER_S", 0.05)
    goes_on, tries, real = threading.Event(), list[int](), os.fsync

    def hang(handle: int) -> None:
        tries.append(handle)
        goes_on.wait()
        real(handle)

    monkeypatch.setattr(os, "fsync", hang)

    async def test() -> None:
        asked = Probe(tmp_path)
        for told in await asyncio.gather(*(asked.problem() for _ in range(20))):
            assert "has not answered for 0.05 s" in told
        assert len(tries) == 1
        goes_on.set()
        while await asked.problem():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert len(tries) == 1  # and that answer holds for a moment

    asyncio.run(test())


def test_a_node_whose_disk_fails_is_not_ready_until_it_is_well_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "FRESH_S", 0.0)

    async def ready(nodes: Nodes) -> list[bool]:
        answers = []
        for client in nodes.clients.values():
            stub = health_pb2_grpc.HealthStub(client.channel)
            for service in ("", "comine.v1.Control"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                answers.append(answer.status == health_pb2.HealthCheckResponse.SERVING)
        return answers

    async def test() -> None:
        async with running(tmp_path) as nodes:
            assert await ready(nodes) == [True] * 6
            with monkeypatch.context() as patch:
                patch.setattr(tempfile, "TemporaryFile", full)
                assert await ready(nodes) == [False] * 6
            assert await ready(nodes) == [True] * 6
            assert nodes.logs["north"].getvalue().count('"disk unwell"') == 1
            assert '"disk well"' in nodes.logs["north"].getvalue()

    asyncio.run(test())
