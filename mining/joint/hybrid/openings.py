"""Openings whose size the receivers do not know beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from link.errors import MalformedMessage
from link.session import Session
from mining.joint.estimated import Estimated, unpack_estimates
from protos.v1.hybrid_pb2 import OpeningSize

MAX_DOCUMENT: Final = 256 << 20
"""The most bytes of a list of names, of candidates or of a result."""


async def open_document(session: Session, label: str, document: bytes, number: int, to: Iterable[str]) -> None:
    """Opens bytes that hold so many values.

    Args:
        session: The lane.
        label: One of the job's statement.
        document: The bytes.
        number: How many values they count for.
        to: The receivers.

    Raises:
        UndeclaredDisclosure: The statement does not allow it.
    """
    receivers = [party for party in to if party != session.me]
    for party in receivers:
        await session.send(party, OpeningSize(bytes=len(document), number=number))
    await session.open(label, np.frombuffer(document, np.uint8), receivers, number=number)


async def receive_document(session: Session, frm: str, label: str, *, most_bytes: int, most: int) -> bytes:
    """The bytes that `frm` opens.

    Args:
        session: The lane.
        frm: The peer.
        label: One of the job's statement.
        most_bytes: How many bytes there may be.
        most: How many values.

    Raises:
        MalformedMessage: There are more.
    """

    def check(size: OpeningSize) -> None:
        if size.bytes > most_bytes or size.number > most:
            raise ValueError(f"more '{label}' were announced than there can be")

    size = await session.recv(frm, OpeningSize, check)
    opened = await session.receive_opened(frm, label, np.uint8, (size.bytes,), number=size.number)
    return opened.tobytes()


async def receive_estimates(session: Session, analyst: str, most: int) -> Estimated:
    """The result that the analyst opens.

    Args:
        session: The lane.
        analyst: The peer.
        most: How many itemsets there may be.

    Raises:
        MalformedMessage: There are more, or they cannot be read.
    """
    packed = await receive_document(session, analyst, "estimates", most_bytes=MAX_DOCUMENT, most=most)
    try:
        found: Estimated = await session.compute(unpack_estimates, packed)
    except ValueError as error:
        raise MalformedMessage(f"{analyst} sent estimates that cannot be read: {error}", party=analyst) from None
    return found
