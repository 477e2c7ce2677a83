"""What the greetings of two parties must have in common before a session begins."""

from __future__ import annotations

from typing import Final

from link.errors import MalformedMessage, VersionMismatch
from link.version import Window
from protos.v1.link_pb2 import Hello

NONCE_BYTES: Final = 16


def window_of(peer: str, hello: Hello) -> Window:
    """The versions of the wire protocol that a peer speaks.

    Raises:
        MalformedMessage: Its greeting names none.
    """
    try:
        return Window.read(hello.version, hello.oldest_version)
    except ValueError as error:
        raise MalformedMessage(f"{peer} greeted without versions of the wire protocol ({error})", party=peer) from None


def compare(peer: str, mine: Hello, theirs: Hello) -> None:
    """Refuses a peer that means another job or runs otherwise.

    Raises:
        VersionMismatch: It does.
        MalformedMessage: It greeted without a nonce.
    """
    for name, what in (
        ("suite", "cryptographic suite"),
        ("job_id", "job"),
        ("attempt", "attempt"),
        ("spec_digest", "job specification"),
        ("parties", "list of parties"),
    ):
        if getattr(mine, name) != getattr(theirs, name):
            raise VersionMismatch(f"{peer} runs with another {what}; bring both nodes to the same", party=peer)
    if len(theirs.nonce) != NONCE_BYTES:
        raise MalformedMessage(f"{peer} greeted without a nonce of {NONCE_BYTES} bytes", party=peer)
