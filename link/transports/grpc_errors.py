"""Why a call over gRPC failed, as an error of comine: the other end's own word, or what TLS or TCP says."""

from __future__ import annotations

from typing import Final

import grpc

from link.errors import (
    ComineError,
    ConfigurationError,
    IdentityError,
    InternalError,
    MalformedMessage,
    PeerError,
    from_reporter,
)
from link.files.printable import one_line
from link.relay.address import shown
from link.relay.gateway import trouble


class ConnectionBroken(PeerError):
    """A connection could not be made or broke, as this end sees it; not a party's own word about a peer."""


class ConnectionClosed(ConnectionBroken):
    """A connection that the other end has closed as it was made: it stops, refuses the certificate or has too many."""


class NotTheParty(IdentityError):
    """What answers at a party's address cannot prove to be the party, as this end sees it."""


# What a call meets that has not reached the party: it may, at another time.
UNREACHED: Final = (ConnectionBroken, NotTheParty)


def explained(error: grpc.RpcError, party: str, address: str, caller: str) -> ComineError:
    """The error behind a failed call: the party's own where it sent one, otherwise what TLS or TCP says.

    Args:
        error: As the call raised it.
        party: Who should have answered.
        address: HOST:PORT, or through which relay.
        caller: What this end is: coordinator, or client.
    """
    if not isinstance(error, grpc.Call | grpc.aio.AioRpcError):  # such as the use of a channel that is closed
        return InternalError(f"the call to {party} at {shown(address)} failed: {one_line(str(error))}", party=party)
    metadata = dict(error.trailing_metadata() or ())
    code, details = metadata.get("comine-code"), one_line(error.details() or "")
    if isinstance(code, str):
        where = metadata.get("comine-party")
        return from_reporter(code, details, where if isinstance(where, str) and where else party, party)
    return _unanswered(error.code(), details, party, address, caller)


def through_relay(party: str, address: str) -> ComineError | None:
    """Why a party cannot be reached that only a relay connects, where that is known: the relay or the way to it."""
    found = trouble(party, address)
    if found is None or isinstance(found, IdentityError | ConfigurationError):
        return found
    return ConnectionBroken(found.message, party=found.party)


def silent(party: str, address: str) -> ComineError:
    """The error of a call that was not answered in time."""
    if found := through_relay(party, address):
        return found
    return ConnectionBroken(
        f"{party} at {shown(address)} did not answer in time; check its node and the network", party=party
    )


def _unanswered(status: grpc.StatusCode, details: str, name: str, address: str, caller: str) -> ComineError:
    if status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED) and (found := through_relay(name, address)):
        return found
    address = address if status is grpc.StatusCode.DEADLINE_EXCEEDED else shown(address)
    match status:
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return silent(name, address)
        case grpc.StatusCode.UNIMPLEMENTED:
            return PeerError(f"what answers at {address} is no party node of comine; check {name}", party=name)
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
            return IdentityError(f"{name} at {address} refuses the {caller}'s certificate: {details}", party=name)
        case grpc.StatusCode.UNAVAILABLE:
            return _unreachable(details, name, address, caller)
        case grpc.StatusCode.CANCELLED:  # what a call meets that is under way when the node stops
            return _unreachable("Socket closed", name, address, caller)
        case grpc.StatusCode.INTERNAL if "deserializing response" in details:
            return unreadable(name, address)
        case grpc.StatusCode.UNKNOWN | grpc.StatusCode.INTERNAL | grpc.StatusCode.DATA_LOSS if not _raised(details):
            return ConnectionBroken(
                f"the connection to {name} at {address} broke in the midst of a call; check the network between",
                party=name,
            )
        case _:
            return InternalError(f"{name} at {address} failed with {status.name}; see its log", party=name)


def unreadable(name: str, address: str) -> MalformedMessage:
    """What answers with bytes that are no answer; asyncio's gRPC gives nothing in their place."""
    return MalformedMessage(
        f"{name} at {shown(address)} answered with what cannot be read; check its version", party=name
    )


def _raised(details: str) -> bool:
    """Whether a call failed by what the other end raised, which gRPC reports; else its stream was spoilt on the way."""
    return details.startswith("Unexpected <class")


def _unreachable(details: str, name: str, address: str, caller: str) -> PeerError:
    if "CERTIFICATE_VERIFY_FAILED" in details:
        reason = details.rpartition("CERTIFICATE_VERIFY_FAILED: ")[2].partition(":")[0] or "not trusted"
        return NotTheParty(
            f"the certificate shown at {address} is not good for {name} ({reason}); check that its node and the "
            f"{caller} use the same ca.crt and that it has not expired",
            party=name,
        )
    if "Hostname Verification" in details or "is not in peer certificate" in details:
        return NotTheParty(
            f"what answers at {address} is not {name}: its certificate names another party; check the federation file",
            party=name,
        )
    if "WRONG_VERSION_NUMBER" in details or "Ssl handshake failed" in details:
        return NotTheParty(f"what answers at {address} does not speak TLS as {name} should", party=name)
    for words, what in (
        ("Connection refused", "nothing listens there; is its node running?"),
        ("DNS resolution failed", "its host name is not known"),
        ("Domain name not found", "its host name is not known"),
    ):
        if words in details:
            return ConnectionBroken(f"{name} at {address} cannot be reached: {what}", party=name)
    if "Socket closed" in details or "reset by peer" in details:
        return ConnectionClosed(
            f"{name} at {address} cannot be reached: the connection was closed; its node stopped, or does not trust "
            "this certificate",
            party=name,
        )
    return ConnectionBroken(f"{name} at {address} cannot be reached; check its node and the network", party=name)
