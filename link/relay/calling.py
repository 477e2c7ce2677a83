"""Dials a relay and proves who dials; the connection is a WebSocket over TLS, which passes what lets web pages pass."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, ProxyError, WebSocketException

from link.errors import ComineError, ConfigurationError, IdentityError, PeerError
from link.files.printable import one_line
from link.pki.identity import Identity
from link.relay.address import RelayAddress
from link.relay.handshake import HANDSHAKE_S, MOST_BYTES, NONCE_BYTES, VERSION, Action, hello, read
from link.relay.proxies import proxy_to
from protos.v1.relay_pb2 import RelayAnswer, RelayChallenge, RelayDial, RelayListen, RelayReason, RelayRefusal

PING_S: Final = 10.0  # on a connection on which a party listens; those with traffic are tried by gRPC inside
QUEUE: Final = 8  # messages that wait to be read
WRITE_BYTES: Final = 256 << 10  # that wait to be sent


class RelayFault(PeerError):
    """A relay, which is no party, cannot be reached or does not connect; or a party is not connected to it."""


class Unreached(RelayFault):
    """The relay itself does not answer."""


class NotConnected(RelayFault):
    """The party that was called is not connected to the relay at present."""


class Displaced(RelayFault):
    """Another connection of the same party has taken this one's place."""


async def call(
    identity: Identity, relay: RelayAddress, action: Action, heard: Callable[[], None] = lambda: None
) -> ClientConnection:
    """A connection to the relay on which the action has been granted.

    Args:
        identity: Who dials.
        relay: Where.
        action: What for.
        heard: Called when the relay has answered, and has yet to grant the action.

    Raises:
        RelayFault: The relay cannot be reached, or refuses.
        IdentityError: It does not believe the certificate, or has another name.
        ConfigurationError: The file with the relay's authorities cannot be read, or the proxy before it not used.
    """
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            connection = await _connected(identity, relay, PING_S if isinstance(action, RelayListen) else None)
            try:
                nonce = await _nonce(connection, relay)
                heard()
                await connection.send(hello(identity, relay.called, nonce, action).SerializeToString())
                answer = read(RelayAnswer, await connection.recv())
                if answer.WhichOneof("content") != "ready":
                    to = action.to if isinstance(action, RelayDial) else ""
                    raise refused(answer.refusal, relay, identity, to)
            except BaseException:
                await _end(connection)
                raise
            return connection
    except (OSError, EOFError, WebSocketException) as error:
        raise Unreached(f"{relay} cannot be reached: {_reason(error)}") from None
    except TimeoutError:
        raise Unreached(f"{relay} does not answer within {HANDSHAKE_S:g} s; check the network between") from None


async def look(identity: Identity, relay: RelayAddress) -> None:
    """Makes sure that a relay answers at an address.

    Raises:
        ComineError: As `call`.
    """
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            connection = await _connected(identity, relay, None)
            try:
                await _nonce(connection, relay)
            finally:
                await _end(connection)
    except (OSError, EOFError, WebSocketException) as error:
        raise Unreached(f"{relay} cannot be reached: {_reason(error)}") from None
    except TimeoutError:
        raise Unreached(f"{relay} does not answer within {HANDSHAKE_S:g} s; check the network between") from None


def refused(refusal: RelayRefusal, relay: RelayAddress, identity: Identity, to: str) -> ComineError:
    """The error behind a relay's refusal.

    Args:
        refusal: What it said.
        relay: Where it is.
        identity: Who was refused.
        to: Whom it had called; empty where nobody.
    """
    me, name = identity.name, RelayReason.Name(refusal.reason) if refusal.reason in RelayReason.values() else ""
    match name.removeprefix("RELAY_REASON_"):
        case "ABSENT":
            what = f"{to} is not connected to {relay} at present; is its node running?"
            return NotConnected(what, party=to)
        case "UNANSWERED":
            what = f"{to} is connected to {relay} but did not take the connection in time; check its node"
            return NotConnected(what, party=to)
        case "IDENTITY":
            return IdentityError(
                f"{relay} refuses the certificate of {me}; check that it is valid, and that the relay serves this "
                "federation's authority",
                party=me,
            )
        case "DISPLACED":
            return Displaced(f"another node with the certificate of {me} has connected to {relay}; stop one of the two")
        case "STREAMS":
            what = f"{relay} refuses {me}: it has as many connections open as it may"
        case "DIALS":
            what = f"{relay} refuses {me}: it dials too often; try again in a minute"
        case "BYTES":
            what = f"{relay} refuses {me}: it has sent as much today as it may; ask who runs the relay"
        case "STOPPING":
            what = f"{relay} stops; try again once it has started"
        case "TOKEN":
            what = f"{relay} no longer knows the caller that {me} was to answer"
        case "VERSION":
            what = f"{relay} and {me} run versions of comine that do not understand each other; bring both to one"
        case _:
            what = f"{relay} refuses {me} without a reason that can be read; check its version"
    return RelayFault(what)


async def _connected(identity: Identity, relay: RelayAddress, ping_s: float | None) -> ClientConnection:
    proxy = proxy_to(relay)
    try:
        return await connect(
            f"wss://{relay.place}/",
            ssl=_tls(relay, identity),
            proxy=None if proxy is None else proxy.url,
            compression=None,
            user_agent_header=None,
            open_timeout=HANDSHAKE_S,
            ping_interval=ping_s,
            ping_timeout=ping_s,
            close_timeout=1,
            max_size=MOST_BYTES,
            max_queue=QUEUE,
            write_limit=WRITE_BYTES,
        )
    except (ConnectionRefusedError, socket.gaierror) as error:
        if proxy is None:
            raise
        raise Unreached(  # only the proxy is dialled from here
            f"{relay} cannot be reached by the proxy {proxy.place} that https_proxy names: {_reason(error)}"
        ) from None


def _tls(relay: RelayAddress, identity: Identity) -> ssl.SSLContext:
    try:
        written = 0 if relay.ca is None else relay.ca.stat().st_mtime_ns
        return _trusting(relay.ca, written, identity.trust.ca_pem)
    except ssl.SSLError:  # an OSError, too, whose words are those of a library
        raise ConfigurationError(
            f"{relay.ca}, with the authority of {relay}, is not a certificate in PEM form; copy the authority's ca.crt "
            "there, or correct [relay] ca of the federation file"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"{relay.ca}, with the authority of {relay}, cannot be read ({error.strerror}); check "
            "[relay] ca of the federation file"
        ) from None


@lru_cache(maxsize=8)  # reading the system's authorities takes longer than a connection
def _trusting(ca: Path | None, written: int, own: bytes) -> ssl.SSLContext:  # noqa: ARG001
    """What checks a relay's certificate.

    Args:
        ca: The file with the authorities; those of the system and the federation's own, where absent.
        written: When it was.
        own: The federation's own.
    """
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.load_verify_locations(cadata=own.decode("ascii"))
    return context


async def _nonce(connection: ClientConnection, relay: RelayAddress) -> bytes:
    challenge = read(RelayChallenge, await connection.recv())
    if challenge.version != VERSION or len(challenge.nonce) != NONCE_BYTES:
        raise RelayFault(f"{relay} runs another version of comine; bring both to one")
    if challenge.relay != relay.called:
        raise IdentityError(
            f"{relay} calls itself '{one_line(challenge.relay)[:100]}'; if that is the one that is meant, write it as "
            "[relay] name in the federation file"
        )
    return challenge.nonce


async def _end(connection: ClientConnection) -> None:
    with contextlib.suppress(OSError, WebSocketException):
        await connection.close()


def _reason(error: Exception) -> str:
    cause = error.__cause__
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not good ({error.verify_message}); check [relay] ca of the federation file"
        case ssl.SSLError():
            return "what answers there does not speak TLS as it should"
        case ProxyError():
            return f"the proxy on the way there does not let it pass ({one_line(str(error))[:200]})"
        case InvalidMessage() | InvalidHandshake():
            return "what answers there is no relay of comine"
        case WebSocketException():
            return "it closed the connection"
        case ConnectionRefusedError():
            return "nothing listens there; is it running?"
        case OSError(errno=None) if cause is not None:
            return "the connection was closed"
        case OSError(strerror=str(reason)):
            return reason
        case _:
            return "the connection was closed"
