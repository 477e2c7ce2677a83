"""What stands before every call of a node's services: the caller's role, and the one translation of errors.

Inside the node an error is an exception. Outside it is a gRPC status with a public sentence and the metadata
`comine-code` and `comine-party`; what an unforeseen exception says stays in this node's log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import DecodeError

from link.errors import (
    ComineError,
    ConfigurationError,
    DeadlineExceeded,
    IdentityError,
    InternalError,
    JobCancelled,
    MalformedMessage,
    PeerError,
    PolicyDenied,
    ProtocolViolation,
    ResourceError,
    UsageError,
)
from link.identity import Identity, Role, check_peer, peer_of
from party.logs import Log

T = TypeVar("T")

MAX_DETAILS: Final = 1000  # characters; a status travels in headers, which are limited

_COORDINATORS: Final[frozenset[Role]] = frozenset({"coordinator"})
_CLIENTS: Final[frozenset[Role]] = frozenset({"client"})
_PARTIES: Final[frozenset[Role]] = frozenset({"party"})
_PLURAL: Final[Mapping[Role, str]] = {"coordinator": "coordinators", "client": "clients", "party": "parties"}

_CONTROL: Final = ("Describe", "Estimate", "Propose", "Queue", "Start", "Watch", "Deal", "Result", "Cancel")
_COLLECTING: Final = ("Create", "List", "Estimate", "Watch", "Export", "Close", "Delete")

ROLES: Final[Mapping[str, Mapping[str, frozenset[Role]]]] = {
    "comine.v1.Control": dict.fromkeys(_CONTROL, _COORDINATORS),
    "comine.v1.FrequencyEstimation": {
        **dict.fromkeys(_COLLECTING, _COORDINATORS),
        **dict.fromkeys(("Describe", "Domain"), _COORDINATORS | _CLIENTS),
        "Submit": _CLIENTS,
    },
    "comine.v1.Shuffler": {
        **dict.fromkeys(("Create", "Flush", "Retire"), _COORDINATORS),
        "Describe": _COORDINATORS | _CLIENTS | _PARTIES,
        "Submit": _CLIENTS | _PARTIES,
        "Forward": _PARTIES,
        "Collect": _COORDINATORS | _PARTIES,
    },
    "comine.v1.Anonymization": dict.fromkeys(("ListDatasets", "Query", "Anonymize"), _COORDINATORS),
}
"""Who may call a method, by service; what is not listed may be called by nobody."""

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
    """The name of the coordinator that calls, by the certificate that `Gate` has found good.

    Raises:
        IdentityError: The caller is no coordinator.
    """
    role, name = peer_of(context.auth_context())
    _check_role(_COORDINATORS, role, name, me)
    return name


def _check_role(allowed: frozenset[Role], role: Role, name: str, me: str) -> None:
    if role in allowed:
        return
    if allowed == _COORDINATORS:
        raise IdentityError(f"{me} takes orders from coordinators only, and {name} is a {role}", party=me)
    who = " and ".join(_PLURAL[each] for each in sorted(allowed, reverse=True)) or "nobody"
    raise IdentityError(f"{me} answers this to {who} only, and {name} is a {role}", party=me)


class _Unreadable:
    """Stands for a request that is none: who sent it, and whether they may, is known only behind the gate."""


_UNREADABLE: Final = _Unreadable()


def _lenient(deserializer: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def deserialize(data: bytes) -> Any:
        try:
            return deserializer(data)
        except DecodeError:
            return _UNREADABLE

    return deserialize


class Gate(grpc.aio.ServerInterceptor):
    """Lets only callers of the right role with a good certificate in, and translates what methods raise.

    Args:
        identity: This party, and whom it believes.
        log: The node's log.
    """

    def __init__(self, identity: Identity, log: Log) -> None:
        self._me, self._trust, self._log = identity.name, identity.trust, log

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Wraps the handlers of the services in `ROLES` and leaves all others as they are."""
        handler = await continuation(handler_call_details)
        service, _, call = handler_call_details.method.removeprefix("/").partition("/")
        if handler is None or service not in ROLES:
            return handler
        allowed = ROLES[service].get(call, frozenset())
        wire = {
            "request_deserializer": _lenient(handler.request_deserializer),
            "response_serializer": handler.response_serializer,
        }
        if handler.request_streaming and not handler.response_streaming:
            unary = self._watched(call, handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(self._unary(call, allowed, unary), **wire)
        if handler.request_streaming:
            stream = self._watched(call, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(self._stream(call, allowed, stream), **wire)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(call, allowed, handler.unary_stream), **wire)
        return grpc.unary_unary_rpc_method_handler(self._unary(call, allowed, handler.unary_unary), **wire)

    def _unary(
        self, call: str, allowed: frozenset[Role], method: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def guarded(request: Any, context: Context) -> Any:
            async with self._translated(call, context):
                self._check_readable(call, request, self._admit(allowed, context))
                return await method(request, context)

        return guarded

    def _stream(
        self, call: str, allowed: frozenset[Role], method: Callable[..., AsyncIterator[Any]]
    ) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
            async with self._translated(call, context):
                self._check_readable(call, request, self._admit(allowed, context))
                async for response in method(request, context):
                    yield response

        return guarded

    def _admit(self, allowed: frozenset[Role], context: Context) -> str:
        """The name of a caller who may call."""
        role, name = check_peer(self._trust, context.auth_context())
        _check_role(allowed, role, name, self._me)
        return name

    def _check_readable(self, call: str, request: object, caller: str) -> None:
        if request is _UNREADABLE:
            raise MalformedMessage(f"{caller} sent {self._me} a request for {call} that cannot be read", party=caller)

    def _watched(self, call: str, method: Callable[..., T]) -> Callable[..., T]:
        """The method, of a stream of requests that ends when the certificate of its sender is revoked."""

        async def admitted(messages: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            caller = context.auth_context()
            async for message in messages:
                _, name = check_peer(self._trust, caller)
                self._check_readable(call, message, name)
                yield message

        return lambda messages, context: method(admitted(messages, context), context)

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
        error = error.at(self._me)
        metadata = (("comine-code", error.code), ("comine-party", error.party or self._me))
        await context.abort(status_of(error), error.message[:MAX_DETAILS], metadata)
