"""What stands before every call of the control service: the caller's role, and the one translation of errors.

Inside the node an error is an exception. Outside it is a gRPC status with a public sentence and the metadata
`comine-code` and `comine-party`; what an unforeseen exception says stays in this node's log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc

from link.errors import (
    ComineError,
    ConfigurationError,
    DeadlineExceeded,
    IdentityError,
    InternalError,
    JobCancelled,
    PeerError,
    PolicyDenied,
    ProtocolViolation,
    ResourceError,
    UsageError,
)
from link.identity import Identity, check_peer, peer_of
from party.logs import Log

PREFIX: Final = "/comine.v1.Control/"
MAX_DETAILS: Final = 1000  # characters; a status travels in headers, which are limited

Context = grpc.aio.ServicerContext[Any, Any]

_STATUS: Final[dict[type[ComineError], grpc.StatusCode]] = {
    UsageError: grpc.StatusCode.INVALID_ARGUMENT,
    ResourceError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ConfigurationError: grpc.StatusCode.FAILED_PRECONDITION,
    IdentityError: grpc.StatusCode.PERMISSION_DENIED,
    PeerError: grpc.StatusCode.UNAVAILABLE,
    PolicyDenied: grpc.StatusCode.PERMISSION_DENIED,
    ProtocolViolation: grpc.StatusCode.INVALID_ARGUMENT,
    JobCancelled: grpc.StatusCode.CANCELLED,
    DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    ComineError: grpc.StatusCode.INTERNAL,
}


def status_of(error: ComineError) -> grpc.StatusCode:
    """The gRPC status that stands for an error's class."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def coordinator_of(context: Context, me: str) -> str:
    """The name of the coordinator that calls, by the certificate that `ControlGate` has found good.

    Raises:
        IdentityError: The caller is no coordinator.
    """
    return _coordinator(*peer_of(context.auth_context()), me)


def _coordinator(role: str, name: str, me: str) -> str:
    if role != "coordinator":
        raise IdentityError(f"{me} takes orders from coordinators only, and {name} is a {role}", party=me)
    return name


class ControlGate(grpc.aio.ServerInterceptor):
    """Lets only coordinators with a good certificate call the control service, and translates what its methods raise.

    Args:
        identity: This party, and whom it believes.
        log: The node's log.
    """

    def __init__(self, identity: Identity, log: Log) -> None:
        self._me, self._trust, self._log = identity.name, identity.trust, log

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Wraps the handlers of the control service and leaves all others as they are."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(PREFIX):
            return handler
        call = method.removeprefix(PREFIX)
        wire = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(call, handler.unary_stream), **wire)
        return grpc.unary_unary_rpc_method_handler(self._unary(call, handler.unary_unary), **wire)

    def _unary(self, call: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def guarded(request: Any, context: Context) -> Any:
            async with self._translated(call, context):
                _coordinator(*check_peer(self._trust, context.auth_context()), self._me)
                return await method(request, context)

        return guarded

    def _stream(self, call: str, method: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
            async with self._translated(call, context):
                _coordinator(*check_peer(self._trust, context.auth_context()), self._me)
                async for response in method(request, context):
                    yield response

        return guarded

    @asynccontextmanager
    async def _translated(self, call: str, context: Context) -> AsyncIterator[None]:
        try:
            yield
        except ComineError as error:
            self._log.warning("call refused", call=call, error=error)
            await self._abort(context, error)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            self._log.error("call failed", call=call, error=error)
            fault = f"{self._me} met a fault of its own; the log of {self._me} has the details"
            await self._abort(context, InternalError(fault, party=self._me))

    async def _abort(self, context: Context, error: ComineError) -> None:
        metadata = (("comine-code", error.code), ("comine-party", error.party or self._me))
        await context.abort(status_of(error), error.message[:MAX_DETAILS], metadata)
