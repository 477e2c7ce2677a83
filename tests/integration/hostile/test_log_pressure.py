"""A node whose log nobody reads, and callers who would fill it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from link.logs.limits import A_SECOND, MOST
from link.pki.identity import Role
from link.transports.grpc_channel import dial
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlStub
from tests.examples import slowly
from tests.integration.processes import END_S, START_S, Organisations
from tests.party.nodes import DATA

pytestmark = pytest.mark.turn(2)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Organisations]:
    made = Organisations.create(tmp_path, {name: DATA[name] for name in ("north", "south")})
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def unread(world: Organisations, *, full: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A node whose standard error is a pipe of which nobody reads, perhaps full from the start."""
    reading, writing = os.pipe()
    if full:
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(1 << 12))
        os.set_blocking(writing, True)
    command = [sys.executable, "-m", "comine", "party", "serve", "north.toml"]
    node = subprocess.Popen(command, cwd=world.folder, stderr=writing)
    os.close(writing)
    try:
        yield node
    finally:
        node.kill()
        node.wait()
        os.close(reading)


async def answers(world: Organisations, role: Role = "coordinator", name: str = "hub", times: int = 1) -> Counter[str]:
    """How calls of Describe end, once the node listens."""
    found = Counter[str]()
    channel = dial(world.authority.issue(name, role), "north", world.addresses["north"])
    try:
        async with asyncio.timeout(START_S):
            while True:
                try:
                    await channel.channel_ready()
                    break
                except TimeoutError:
                    continue

        async def one() -> None:
            try:
                await ControlStub(channel).Describe(control.DescribeRequest(challenge=bytes(32)), timeout=END_S)
                found["answered"] += 1
            except grpc.aio.AioRpcError as error:
                found[error.code().name] += 1

        for begin in range(0, times, 50):
            await asyncio.gather(*(one() for _ in range(min(50, times - begin))))
    finally:
        await channel.close()
    return found


@pytest.mark.parametrize(
    ("full", "number"),
    slowly([(True, signal.SIGTERM), (False, signal.SIGTERM), (True, signal.SIGINT)], now=[0]),
)
def test_a_node_whose_log_nobody_reads_serves_and_ends_in_order(
    world: Organisations, full: bool, number: signal.Signals
) -> None:
    with unread(world, full=full) as node:
        assert asyncio.run(answers(world)) == {"answered": 1}
        # More lines than a pipe holds, from callers that are each within the limits.
        for each in range(4):
            refused = asyncio.run(answers(world, "client", f"phone-{each}", 150))
            assert refused == {"PERMISSION_DENIED": 150}
        assert asyncio.run(answers(world)) == {"answered": 1}
        node.send_signal(number)
        assert node.wait(END_S) == 0
    log = (world.folder / "north" / "audit.log").read_text() if (world.folder / "north").exists() else ""
    assert not log or "stopped" in log


def test_a_caller_cannot_fill_the_log_and_others_are_still_told(world: Organisations) -> None:
    world.start("north")
    calls = 400
    assert asyncio.run(answers(world, "client", "flood", calls)) == {"PERMISSION_DENIED": calls}
    assert asyncio.run(answers(world, "client", "other")) == {"PERMISSION_DENIED": 1}
    node = world.nodes["north"]
    node.until('"lines withheld"')
    node.until('"caller": "other"')
    node.send(signal.SIGTERM)
    assert node.end().code == 0
    lines = [json.loads(line) for line in node.lines if line.startswith("{")]
    refused = [line for line in lines if line["event"] == "call refused" and line["caller"] == "flood"]
    withheld = sum(line["lines"] for line in lines if line["event"] == "lines withheld")
    assert len(refused) < MOST + A_SECOND * END_S
    assert 0 < withheld <= calls - len(refused)
