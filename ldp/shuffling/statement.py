"""Statements: what each shuffler says that it did with a batch, signed, so that counts can be held against each other.

    received  = replayed + wrong_size + unreadable + over_share + withheld + forwarded       at each shuffler
    received  = forwarded, and input = output, of the shuffler before                        from the second one on

So reports that get lost, are added or exchanged between two honest neighbours are seen. Which reports a shuffler drops
is its own word: one that drops good ones says so in its counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError

from ldp.shuffling.route import Route
from link.errors import MalformedMessage, ProtocolViolation
from link.pki.identity import Identity, verify
from link.pki.trust import Trust
from protos.v1.shuffle_pb2 import BatchStatement, LayerKey, SignedLayerKey, SignedStatement

_STATEMENT: Final = b"comine shuffle statement 1\0"
_KEY: Final = b"comine shuffler key 1\0"
DROPPED: Final = ("replayed", "wrong_size", "unreadable", "over_share")
"""The reasons for which single reports are dropped; fields of a statement."""


def sign_statement(statement: BatchStatement, identity: Identity) -> SignedStatement:
    """A statement with the shuffler's signature."""
    content = statement.SerializeToString(deterministic=True)
    return SignedStatement(
        statement=content, signature=identity.sign(_STATEMENT + content), certificate=identity.certificate_pem
    )


def sign_key(key: LayerKey, identity: Identity) -> SignedLayerKey:
    """A public key with the shuffler's signature."""
    content = key.SerializeToString(deterministic=True)
    return SignedLayerKey(key=content, signature=identity.sign(_KEY + content), certificate=identity.certificate_pem)


def read_key(signed: SignedLayerKey, route: Route, hop: int, trust: Trust) -> bytes:
    """The public key of a shuffler for a route.

    Args:
        signed: As the shuffler described it.
        route: The route.
        hop: The shuffler's place in it, from 0.
        trust: Whom the reader believes.

    Raises:
        IdentityError: The shuffler has not signed it.
        ProtocolViolation: It is for another route.
    """
    shuffler = route.shufflers[hop]
    verify(trust, signed.certificate, shuffler, _KEY + signed.key, signed.signature)
    try:
        key = LayerKey.FromString(signed.key)
    except DecodeError:
        raise MalformedMessage(f"{shuffler} signed a key that cannot be read", party=shuffler) from None
    if (key.route, key.shuffler) != (route.digest, shuffler):
        raise ProtocolViolation(
            f"{shuffler} signed a key for another route than '{route.name}'; its coordinator is to create the same "
            "route at all its shufflers",
            party=shuffler,
        )
    return key.public_key


def check_chain(
    signed: Sequence[SignedStatement], route: Route, batch: int, n: int, output: bytes, trust: Trust
) -> list[BatchStatement]:
    """Checks what all shufflers up to some hop say of a batch, against each other and against the batch.

    Args:
        signed: Their statements, the first shuffler's first.
        route: The route.
        batch: The number of the batch.
        n: How many reports it has.
        output: SHA-256 of the batch.
        trust: Whom the reader believes.

    Returns:
        The statements.

    Raises:
        IdentityError: One is not signed by its shuffler.
        ProtocolViolation: The counts or digests do not agree; the sentence names the shuffler.
    """
    found: list[BatchStatement] = []
    for shuffler, each in zip(route.shufflers, signed, strict=False):
        verify(trust, each.certificate, shuffler, _STATEMENT + each.statement, each.signature)
        try:
            statement = BatchStatement.FromString(each.statement)
        except DecodeError:
            raise MalformedMessage(f"{shuffler} signed a statement that cannot be read", party=shuffler) from None
        if (statement.route, statement.batch, statement.shuffler) != (route.digest, batch, shuffler):
            raise _differs(shuffler, batch, route, "is of another batch or route")
        _check_counts(statement, found[-1] if found else None, route)
        found.append(statement)
    if not found or len(found) < len(signed):
        raise MalformedMessage(f"batch {batch} of the route '{route.name}' came without its statements")
    if (found[-1].forwarded, found[-1].output) != (n, output):
        raise _differs(found[-1].shuffler, batch, route, "is not of the reports that came with it")
    return found


def _check_counts(mine: BatchStatement, before: BatchStatement | None, route: Route) -> None:
    gone = sum(getattr(mine, reason) for reason in DROPPED) + mine.withheld
    if mine.received != gone + mine.forwarded:
        raise _differs(mine.shuffler, mine.batch, route, "does not say where all reports went")
    if 0 < mine.forwarded < route.minimum:
        raise _differs(
            mine.shuffler, mine.batch, route, f"has fewer reports than {route.minimum}, the least of a batch"
        )
    if before is not None and (mine.received, mine.input) != (before.forwarded, before.output):
        raise _differs(mine.shuffler, mine.batch, route, f"differs from that of {before.shuffler} before it")


def _differs(shuffler: str, batch: int, route: Route, what: str) -> ProtocolViolation:
    return ProtocolViolation(
        f"the statement of {shuffler} on batch {batch} of the route '{route.name}' {what}; one of the nodes is faulty "
        "or lies",
        party=shuffler,
    )
