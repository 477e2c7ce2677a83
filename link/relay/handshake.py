"""The first messages between a relay and who dials it: the relay asks, the caller proves who it is and what it wants.

A company's proxy may end TLS in between, so that TLS says nothing about the caller. It signs the relay's fresh nonce,
the relay's name and the action with the key of its certificate; a signature is good for one connection and one action.
Nothing of what parties say to each other depends on it: they have mutual TLS of their own, inside.
"""

from __future__ import annotations

from typing import Final, TypeVar

from cryptography.hazmat.primitives import hashes
from google.protobuf.message import DecodeError, Message

from link.errors import IdentityError, MalformedMessage
from link.pki.certificates import read_certificate
from link.pki.identity import ROLES, Identity, Role, verify
from link.pki.trust import Trust
from protos.v1.relay_pb2 import RelayAccept, RelayAnswer, RelayDial, RelayHello, RelayIncoming, RelayListen

VERSION: Final = 1
NONCE_BYTES: Final = 16
TOKEN_BYTES: Final = 16
MOST_HANDSHAKE_BYTES: Final = 16 << 10  # of a message that is no traffic
MOST_BYTES: Final = 128 << 10  # of any message
CHUNK_BYTES: Final = 64 << 10  # of traffic in one message
HANDSHAKE_S: Final = 10.0
_PURPOSE: Final = b"comine relay 1"
_MAY: Final[dict[str, tuple[Role, ...]]] = {"listen": ("party",), "accept": ("party",), "dial": ROLES}

Action = RelayListen | RelayDial | RelayAccept
M = TypeVar("M", bound=Message)


def authority_digest(ca_pem: bytes) -> bytes:
    """What names a federation to a relay: SHA-256 of its authority's certificate."""
    return read_certificate(ca_pem).fingerprint(hashes.SHA256())


def hello(identity: Identity, relay: str, nonce: bytes, action: Action) -> RelayHello:
    """What a member answers to a relay's challenge.

    Args:
        identity: The member.
        relay: The relay's name, as the member knows it.
        nonce: Of the challenge.
        action: What it wants.
    """
    made = RelayHello(
        role=identity.role,
        name=identity.name,
        authority=authority_digest(identity.trust.ca_pem),
        certificate=identity.certificate_pem,
    )
    match action:
        case RelayListen():
            made.listen.CopyFrom(action)
        case RelayDial():
            made.dial.CopyFrom(action)
        case RelayAccept():
            made.accept.CopyFrom(action)
    made.signature = identity.sign(_signed(made, relay, nonce))
    return made


def check_hello(hello: RelayHello, trust: Trust, relay: str, nonce: bytes) -> Role:
    """The role of a member that has proved who it is, and may do what it wants.

    Args:
        hello: What it sent.
        trust: Of the federation that it names.
        relay: The relay's name.
        nonce: Of the challenge.

    Raises:
        IdentityError: It has not, or may not.
    """
    allowed = _MAY.get(hello.WhichOneof("action") or "", ())
    role = next((role for role in allowed if role == hello.role), None)
    if role is None:
        raise IdentityError("the role is not one that may do this")
    verify(trust, hello.certificate, hello.name, _signed(hello, relay, nonce), hello.signature, role=role)
    return role


def read(kind: type[M], data: object) -> M:
    """A message of the handshake.

    Raises:
        MalformedMessage: It is none, or too long.
    """
    try:
        if isinstance(data, bytes) and len(data) <= MOST_HANDSHAKE_BYTES:
            return kind.FromString(data)
    except DecodeError:
        pass
    raise MalformedMessage("a message of the relay's protocol cannot be read")


def read_incoming(data: object) -> RelayIncoming:
    """Who wants to be connected to the party that listens.

    Raises:
        MalformedMessage: It cannot be read, or has not the form of a name and token.
    """
    answer = read(RelayAnswer, data)
    incoming = answer.incoming
    if answer.WhichOneof("content") != "incoming" or len(incoming.token) != TOKEN_BYTES or incoming.role not in ROLES:
        raise MalformedMessage("the relay announced a caller in a message that cannot be read")
    return incoming


def _signed(hello: RelayHello, relay: str, nonce: bytes) -> bytes:
    """What a signature is over; each part has its length before it, so that no two actions have the same bytes."""
    action = hello.WhichOneof("action") or ""
    argument = {"dial": hello.dial.to.encode(), "accept": hello.accept.token}.get(action, b"")
    parts = (_PURPOSE, relay.encode(), nonce, hello.authority, action.encode(), argument)
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
