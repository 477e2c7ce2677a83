"""Asks a node whether it serves: from beside it, with its own files and certificate, and with no other tool."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from jobs.federation import Federation
from link.errors import ConfigurationError, PeerError, ResourceError
from link.relay.address import RelayAddress
from link.transports.grpc_channel import dial
from party.node_file import NodeFile

ANSWER_S: Final = 5.0
RELAY_SERVICE: Final = "comine.relay"  # in the health service: whether the node is connected to its relay
_PORT: Final = "port"  # in the state folder
_LOOPBACK: Final = {4: "127.0.0.1", 6: "[::1]"}


async def check(path: Path) -> tuple[str, str]:
    """The name and address of the node of a `party.toml`, if it is ready for jobs.

    Raises:
        ConfigurationError: The file does not say where to ask.
        IdentityError: The node's own certificate does not hold (any more).
        PeerError: The node does not answer, or is not ready.
    """
    config = NodeFile.load(path)
    federation, name = Federation.load(config.party.federation), config.party.name
    address = _own_port(config.party.state_dir) if config.party.listen is None else local_address(config.party.listen)
    relay = RelayAddress.parse(federation.addresses.get(name, ""))
    channel = dial(config.tls.identity(federation.pins), name, address)
    connected = True
    try:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_S)
        if relay is not None:
            seen = await stub.Check(health_pb2.HealthCheckRequest(service=RELAY_SERVICE), timeout=ANSWER_S)
            connected = seen.status == health_pb2.HealthCheckResponse.SERVING
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
    if not connected:
        raise PeerError(f"{name} is up at {address} but not connected to {relay}; its log has the reason", party=name)
    return name, address


def note_port(state: Path, port: int) -> None:
    """Writes down at which port of the loopback a node listens that only dials out.

    Raises:
        ResourceError: The state folder cannot be written.
    """
    try:
        (state / _PORT).write_text(f"{port}\n")
    except OSError as error:
        raise ResourceError(f"{state / _PORT} cannot be written ({error.strerror}); see to its disk") from None


def _own_port(state: Path) -> str:
    try:
        return f"{_LOOPBACK[4]}:{int((state / _PORT).read_text())}"
    except (OSError, ValueError):
        raise PeerError(f"no node has run with the state folder {state}; start it with: comine party serve") from None


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
