"""`comine party health`: what a container's health check asks, with the node's own files and nothing else."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from hypothesis import given
from hypothesis import strategies as st

from comine.command import run
from link.pki.authority import Authority, write_identity
from link.transports.grpc_channel import server_credentials
from link.transports.serving import Serving
from party.node.health import check, local_address
from tests.errors import fails
from tests.party.files import write_federation

Status = health_pb2.HealthCheckResponse
ROWS = [["bread"]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Of a federation in `tmp_path` whose nodes do not run."""
    return write_federation(tmp_path, {"north": ROWS, "south": ROWS})


@asynccontextmanager
async def answering(folder: Path, authority: Authority, status: int, name: str = "north") -> AsyncIterator[None]:
    """Somebody called `name` answers at north's address."""
    server, servicer = grpc.aio.server(), health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await servicer.set("", status)
    listen = re.findall(r'listen = "(.+)"', (folder / "north.toml").read_text())[0]
    server.add_secure_port(listen, server_credentials(authority.issue(name)))
    serving = Serving(server)
    await serving.start()
    try:
        yield
    finally:
        await serving.stop(None)


def asked(folder: Path, authority: Authority, status: int = Status.SERVING, name: str = "north") -> tuple[str, str]:
    """What `check` finds while somebody answers."""

    async def answered() -> tuple[str, str]:
        async with answering(folder, authority, status, name):
            return await check(folder / "north.toml")

    return asyncio.run(answered())


def test_a_node_that_serves_is_healthy(tmp_path: Path, authority: Authority) -> None:
    name, address = asked(tmp_path, authority)
    assert name == "north"
    assert f'listen = "{address}"' in (tmp_path / "north.toml").read_text()


def test_a_node_that_starts_or_stops_is_not(tmp_path: Path, authority: Authority) -> None:
    with fails("E200", party="north"):
        asked(tmp_path, authority, Status.NOT_SERVING)


def test_somebody_else_at_the_address_is_not(tmp_path: Path, authority: Authority) -> None:
    with fails("E200", party="north"):
        asked(tmp_path, authority, name="south")


def test_a_node_whose_own_certificate_has_expired_is_not(tmp_path: Path, authority: Authority) -> None:
    write_identity(authority.issue("north", valid_days=-1), tmp_path / "pki", force=True)
    with fails("E201"):
        asked(tmp_path, authority)


def test_the_command_tells_what_it_found(
    tmp_path: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "north.toml"
    assert run(["party", "health", str(file)]) == 20
    told = capsys.readouterr()
    assert told.out == ""
    assert f"start it with: comine party serve {file} (E200; comine explain E200)" in told.err

    async def answered(*more: str) -> int:
        async with answering(tmp_path, authority, Status.SERVING):
            return await asyncio.to_thread(run, ["party", "health", str(file), *more])

    assert asyncio.run(answered()) == 0
    assert re.fullmatch(r"north is ready at 127\.0\.0\.1:\d+\n", capsys.readouterr().out)
    assert asyncio.run(answered("--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["party"], found["ready"]) == ("comine.health/1", "north", True)
    assert run(["party", "health", str(tmp_path / "west.toml")]) == 10


@given(st.ip_addresses(), st.integers(1, 65535))
def test_only_addresses_that_mean_all_are_replaced_by_the_machine_itself(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> None:
    for listen in (f"{ip}:{port}", f"[{ip}]:{port}", f"node.example:{port}"):
        asked = local_address(listen)
        if listen.startswith("node") or not ip.is_unspecified:
            assert asked == listen
        else:
            assert asked == {4: f"127.0.0.1:{port}", 6: f"[::1]:{port}"}[ip.version]


@pytest.mark.parametrize(("listen", "asked"), [("0.0.0.0:7101", "127.0.0.1:7101"), ("[::]:7101", "[::1]:7101")])
def test_a_node_in_a_container_is_asked_at_home(listen: str, asked: str) -> None:
    assert local_address(listen) == asked


def test_a_port_that_is_not_fixed_cannot_be_asked() -> None:
    with fails("E100"):
        local_address("0.0.0.0:0")
