"""Connections without a certificate, more than the node has descriptors: members are served, and jobs go on."""

from __future__ import annotations

import asyncio
import json
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from link.transports.grpc_channel import dial
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlStub
from tests.integration import processes
from tests.integration.processes import START_S, Organisations
from tests.party.nodes import DATA

DESCRIPTORS = 1024  # as systemd gives by default
STRANGERS = 1500


@contextmanager
def strangers(address: str, number: int, words: bytes = b"") -> Iterator[None]:
    """So many connections from one address that say this and no more, each renewed as soon as it is closed."""
    host, _, port = address.rpartition(":")
    over, full = threading.Event(), threading.Event()

    def flood() -> None:
        open_: dict[int, socket.socket] = {}
        with select.epoll() as heard:
            while not over.wait(0.05):
                for place, _ in heard.poll(0):
                    if not _is_open(open_[place]):
                        del open_[place]
                while len(open_) < number and not over.is_set():
                    new = socket.socket()
                    new.settimeout(1)
                    try:
                        new.connect((host, int(port)))
                        new.sendall(words)
                    except OSError:
                        new.close()
                        break
                    new.setblocking(False)
                    open_[new.fileno()] = new
                    heard.register(new, select.EPOLLIN)
                full.set()
        for each in open_.values():
            each.close()

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        assert full.wait(START_S)
        yield
    finally:
        over.set()
        thread.join()


def _is_open(connection: socket.socket) -> bool:
    try:
        if connection.recv(1):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    connection.close()
    return False


async def _served(world: Organisations, times: int) -> int:
    """Calls of a member, each over a connection of its own, until so many were answered; how many were not."""
    missed = answered = 0
    hub = world.authority.issue("hub", "coordinator")
    async with asyncio.timeout(START_S):
        while answered < times:
            channel = dial(hub, "north", world.addresses["north"])
            try:
                await ControlStub(channel).Describe(control.DescribeRequest(challenge=bytes(32)), timeout=START_S)
                answered += 1
            except grpc.aio.AioRpcError:
                missed += 1
            finally:
                await channel.close()
    return missed


def limited(arguments: list[str], cwd: Path, environment: dict[str, str], *, preload: bool, release: str) -> Any:
    command = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$0" "$@"', sys.executable, "-m", "comine", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, stdout=pipe, stderr=pipe)


@contextmanager
def served(folder: Path) -> Iterator[Organisations]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < STRANGERS + DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    made = Organisations.create(folder, {name: DATA[name] for name in ("north", "south")})
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(processes, "begin", limited)
            made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    with served(tmp_path_factory.mktemp("world")) as made:
        yield made


def test_strangers_who_say_nothing_keep_no_member_out(world: Organisations) -> None:
    with strangers(world.addresses["north"], STRANGERS):
        world.nodes["north"].until('"connections closed"')  # as soon as the node has seen them
        asyncio.run(_served(world, 5))
        assert asyncio.run(_served(world, 30)) <= 3


@pytest.mark.slow
def test_a_job_goes_on_amid_strangers(world: Organisations) -> None:
    long = "".join(f"item{i}\n" for i in range(3000))
    for name in world.data:
        (world.folder / f"{name}.dat").write_text(long)
    run = world.begin(world.job(min_support="1", more='universe = "all-items"\nmax_length = 1'), "result")
    for node in world.nodes.values():
        node.until('"job started"')
    with strangers(world.addresses["north"], STRANGERS), strangers(world.addresses["south"], STRANGERS):
        ran = run.end()
    assert ran.code == 0, ran.err


@pytest.mark.slow
def test_strangers_take_no_node_out(tmp_path: Path) -> None:
    with served(tmp_path) as world, strangers(world.addresses["north"], STRANGERS, b"\x16"):
        asyncio.run(_served(world, 10))
        node = world.nodes["north"]
        line = json.loads(node.until('"connections closed"'))
        assert (line["address"], line["level"]) == ("127.0.0.1", "warning")
        assert line["connections"] > 0
        node.send(signal.SIGTERM)
        assert node.end().code == 0
        lines = [json.loads(each) for each in node.lines if each.startswith("{")]
        assert sum(each["event"] == "connections closed" for each in lines) <= 10
        assert {each["event"] for each in lines} <= {"ready", "connections closed", "stopping", "stopped"}
