"""Calls to one node, whatever service of it is called."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Final, Self, TypeVar

import grpc

from link.errors import ComineError, IdentityError, MalformedMessage
from link.pki.identity import Identity, is_misjudged
from link.transports.grpc_channel import dial
from link.transports.grpc_errors import explained, unreadable

T = TypeVar("T")

REACH_S: Final = 5.0  # for the first answer of a node
ANSWER_S: Final = 60.0  # for answers that may need the party's data


class NodeClient:
    """A connection to one node, closed at the end of its context; every fault is a `ComineError` that names the node.

    Args:
        identity: The coordinator.
        party: Whose node it must prove to be.
        address: HOST:PORT.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        self.party, self.address, self._identity = party, address, identity
        self.channel = dial(identity, party, address)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection."""
        await self.channel.close()

    async def call(self, call: Awaitable[T]) -> T:
        """The answer to a call on this connection.

        Raises:
            MalformedMessage: It cannot be read.
            ComineError: There was none; see `explain`.
        """
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            raise self.explain(error) from None
        return self.readable(answer)

    async def parts(self, call: Any) -> AsyncGenerator[Any]:
        """The answers to a call that has several; it ends with the generator.

        Raises:
            ComineError: As `call`.
        """
        try:
            while (part := await self.call(call.read())) is not grpc.aio.EOF:
                yield part
        finally:
            call.cancel()

    def readable(self, answer: T) -> T:
        """An answer, if it is one: in the place of bytes that are none gRPC gives nothing.

        Raises:
            MalformedMessage: It is none.
        """
        if answer is None:
            raise unreadable(self.party, self.address)
        return answer

    def explain(self, error: grpc.aio.AioRpcError) -> ComineError:
        """The error behind a failed call: the node's own where it sent one, otherwise what TLS or TCP says."""
        found = explained(error, self.party, self.address, "coordinator")
        if is_misjudged(self._identity, found):
            return IdentityError(
                f"{self.party} takes the coordinator's certificate for expired, which it is not by the clock here; set "
                "both clocks by a time server",
                party=self.party,
            )
        return found

    def malformed(self, what: str) -> MalformedMessage:
        """The error of a node that sent something other than the protocol promises."""
        return MalformedMessage(f"the node of {self.party} sent {what}", party=self.party)
