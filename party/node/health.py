"""Asks a node whether it serves: from beside it, with its own files and certificate, and with no other tool."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from jobs.federation import Federation
from link.errors import ConfigurationError, PeerError
from link.transports.grpc_channel import dial
from party.config import PartyConfig

ANSWER_S: Final = 5.0
_LOOPBACK: Final = {4: "127.0.0.1", 6: "[::1]"}


async def check(path: Path) -> tuple[str, str]:
    """The name and address of the node of a `party.toml`, if it is ready for jobs.

    Raises:
        ConfigurationError: The file does not say where to ask.
        IdentityError: The node's own certificate does not hold (any more).
        PeerError: The node does not answer, or is not ready.
    """
    config = PartyConfig.load(path)
    name, address = config.party.name, local_address(config.party.listen)
    identity = config.tls.identity(Federation.load(config.party.federation).pins)
    channel = dial(identity, name, address)
    try:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_S)
    except grpc.aio.AioRpcError as error:
        raise PeerError(
            f"no node of {name} answers at {address} ({error.code().name.lower().replace('_', ' ')}); "
            f"start it with: comine party serve {path}",
            party=name,
        ) from None
    finally:
        await channel.close()
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise PeerError(
            f"{name} is up at {address} but not ready: it starts or stops, or its disk fails; see its log", party=name
        )
    return name, address


def local_address(listen: str) -> str:
    """Where a node that listens at `listen` is reached from its own machine.

    Raises:
        ConfigurationError: It takes whatever port is free.
    """
    host, _, port = listen.rpartition(":")
    if port == "0":
        raise ConfigurationError(f"a node that listens at {listen} takes any free port; name one in [party] listen")
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return listen
    return f"{_LOOPBACK[ip.version]}:{port}" if ip.is_unspecified else listen
