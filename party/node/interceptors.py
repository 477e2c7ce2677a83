"""What stands before every call of a node's services: the caller's role, and the one translation of errors.

Inside the node an error is an exception. Outside it is a gRPC status with a public sentence and the metadata
`comine-code` and `comine-party`; what an unforeseen exception says stays in this node's log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError

from link.errors import (
    ComineError,
    ConfigurationError,
    DeadlineExceeded,
    IdentityError,
    InternalError,
    JobCancelled,
    LimitExceeded,
    MalformedMessage,
    PeerError,
    PolicyDenied,
    ProtocolViolation,
    ResourceError,
    UnexpectedMessage,
    UsageError,
    placeless,
)
from link.logs.structured import Log
from link.pki.identity import NAME, Identity, Role, check_peer, peer_of
from link.transports.grpc_channel import MAX_MESSAGE_BYTES
from link.transports.grpc_transport import SERVICE as LINK_SERVICE
from party.node.limits import MemoryLimits, Streams
from party.node.methods import METHODS, SHORT_BYTES, Method

# Of one member at once. Coordinators watch each of their jobs by a call.
MAX_CALLS: Final[Mapping[Role, int]] = {"client": 64, "coordinator": 1024, "party": 256}
OK: Final = "OK"  # the code of a call that went well
HELD_BYTES: Final = 16 << 20  # of one member's single requests
REQUEST_S: Final = 60.0  # for one of these to arrive
MAX_DETAILS: Final = 1000  # characters; a status travels in headers, which are limited

_LOOKS: Final = frozenset(
    {"Watch"}
)  # which only asks: that there is no such job is an answer, as of one refused elsewhere
_PLURAL: Final[Mapping[Role, str]] = {"coordinator": "coordinators", "client": "clients", "party": "parties"}

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
    """The gRPC status of an error's class."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def coordinator_of(context: Context, me: str) -> str:
    """The name of the coordinator that calls, by the certificate that `Gate` has found good.

    Raises:
        IdentityError: The caller is no coordinator.
    """
    role, name = peer_of(context.auth_context())
    _check_role(frozenset({"coordinator"}), role, name, me)
    return name


def _identified(context: Context) -> tuple[Role, str] | None:
    """The caller by its certificate, where that names somebody."""
    try:
        return peer_of(context.auth_context())
    except IdentityError:
        return None


def _named(caller: tuple[Role, str] | None, end: str) -> dict[str, str]:
    """The caller for the log: by its certificate, or by its address where that names nobody."""
    if caller is not None:
        return {"caller": caller[1]}
    return {"address": unquote(end).partition(":")[2].rpartition(":")[0] or "unknown"}


def _check_role(allowed: frozenset[Role], role: Role, name: str, me: str) -> None:
    if role in allowed:
        return
    if allowed == {"coordinator"}:
        raise IdentityError(f"{me} takes orders from coordinators only, and {name} is a {role}", party=me)
    who = " and ".join(_PLURAL[each] for each in sorted(allowed, reverse=True))
    raise IdentityError(f"{me} answers this to {who} only, and {name} is a {role}", party=me)


class _Unreadable:
    """In place of a request that cannot be read."""


class _TooLong:
    """In place of a request that is longer than any honest one, and was not unfolded."""


class _Arrived(NamedTuple):
    """A request as it came, or what replaces it, and its bytes; who sent it is known only behind the gate."""

    request: Any
    size: int


def _reading(deserializer: Callable[[bytes], Any], most: int) -> Callable[[bytes], _Arrived]:
    def read(data: bytes) -> _Arrived:
        if len(data) > most:
            return _Arrived(_TooLong(), most)
        try:
            return _Arrived(deserializer(data), len(data))
        except DecodeError:
            return _Arrived(_Unreadable(), len(data))

    return read


class _Caller(NamedTuple):
    """Who calls, as its certificate says.

    Attributes:
        role: Its role.
        name: Its name.
        proof: What gRPC knows of the connection, by which the certificate is checked again.
        end: What gRPC calls its end of the connection.
    """

    role: Role
    name: str
    proof: Mapping[str, Iterable[bytes]]
    end: str


class Gate(grpc.aio.ServerInterceptor):
    """Lets only callers of the right role with a good certificate in, and translates what methods raise.

    Every method is served as a stream of requests and responses, which on the wire is the same as a single one. So a
    caller is judged before gRPC reads any of its request: until then all that it can have sent is a window of the
    stream, `link.transports.grpc_channel.WINDOW_BYTES`. And no request reaches a method, and no response leaves it,
    without a look at the caller's certificate: it may have been revoked while the call lasts.

    What one member of the federation can have under way is bounded: its calls by `MAX_CALLS`, and the bytes of single
    requests that are read or answered by `HELD_BYTES`; who is about to pass those waits in its own queue.

    Args:
        identity: This party, and whom it believes.
        log: The node's log.
        met: Called for each good caller with what gRPC calls its end of the connection, its role and its name.
        read: Called for each message that is read with what gRPC calls its sender's end, and its bytes.
        answered: Called for each call that is over with the caller's role and name, or None and "", the method, the
            code of the error or `OK`, and the seconds that it took.

    Attributes:
        me: This party's name.
        trust: Whom the party believes, from now on.
    """

    def __init__(
        self,
        identity: Identity,
        log: Log,
        met: Callable[[str, Role, str], None] = lambda peer, role, name: None,
        read: Callable[[str, int], None] = lambda peer, size: None,
        answered: Callable[[Role | None, str, str, str, float], None] = lambda role, name, method, code, seconds: None,
    ) -> None:
        self.me, self.trust, self._log, self._met, self._read = identity.name, identity.trust, log, met, read
        self._answered = answered
        self._calls = {role: Streams(most, identity.name) for role, most in MAX_CALLS.items()}
        self._held = MemoryLimits(HELD_BYTES)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Wraps the handlers of all methods, but for `LINK_SERVICE`, which checks each message itself."""
        handler = await continuation(handler_call_details)
        service, _, call = handler_call_details.method.removeprefix("/").partition("/")
        if handler is None or service == LINK_SERVICE:
            return handler
        method = METHODS.get(service, {}).get(call)
        if method is None:
            return None
        return grpc.stream_stream_rpc_method_handler(
            self._guarded(call, method, handler),
            request_deserializer=_reading(handler.request_deserializer, method.most),
            response_serializer=handler.response_serializer,
        )

    def _guarded(self, call: str, method: Method, handler: Any) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(arriving: AsyncIterator[_Arrived], context: Context) -> AsyncIterator[Any]:
            async with self._translated(call, context), AsyncExitStack() as stack:
                caller = self._admitted(method, context)
                stack.enter_context(self._calls[caller.role].one(caller.name))
                if handler.request_streaming:
                    request = self._requests(call, method, caller, arriving)
                else:
                    request = await stack.enter_async_context(self._request(call, method, caller, arriving))
                responses = self._responses(handler, request, context)
                async with aclosing(responses):
                    async for response in responses:
                        check_peer(self.trust, caller.proof)
                        yield response

        return guarded

    def _admitted(self, method: Method, context: Context) -> _Caller:
        """Who calls, and may."""
        proof = context.auth_context()
        caller = _Caller(*check_peer(self.trust, proof), proof, context.peer())
        self._met(caller.end, caller.role, caller.name)
        _check_role(method.roles, caller.role, caller.name, self.me)
        return caller

    async def _requests(
        self, call: str, method: Method, caller: _Caller, arriving: AsyncIterator[_Arrived]
    ) -> AsyncGenerator[Any]:
        """The requests of a stream, which ends when the certificate of its sender is revoked."""
        async for arrived in arriving:
            check_peer(self.trust, caller.proof)
            yield self._checked(call, method, caller, arrived)

    @asynccontextmanager
    async def _request(
        self, call: str, method: Method, caller: _Caller, arriving: AsyncIterator[_Arrived]
    ) -> AsyncIterator[Any]:
        """The request of a call that has one; it counts as held from before it is read until the call is over.

        While it is read it counts as the longest that gRPC takes in: how long it is shows only when it is there. Of
        methods whose requests are short one is read at a time, beside the others: an honest one is there at once. Once
        read it counts as what it is, since calls such as Watch last.
        """
        member, short = f"{caller.role}/{caller.name}", method.most <= SHORT_BYTES
        limit, size = (f"short/{member}", HELD_BYTES) if short else (member, MAX_MESSAGE_BYTES)
        async with AsyncExitStack() as stack:
            reading = await stack.enter_async_context(self._held.some(limit, size))
            try:
                async with asyncio.timeout(REQUEST_S):
                    arrived = await _first(arriving)
            except TimeoutError:
                raise PeerError(
                    f"the request for {call} of {caller.name} did not arrive at {self.me} within {REQUEST_S:g} s; "
                    "check the network between",
                    party=caller.name,
                ) from None
            if short:
                await stack.enter_async_context(self._held.some(f"kept/{member}", arrived.size))
            reading.keep(0 if short else arrived.size)
            yield self._checked(call, method, caller, arrived)

    async def _responses(self, handler: Any, request: Any, context: Context) -> AsyncGenerator[Any]:
        match handler.request_streaming, handler.response_streaming:
            case False, False:
                yield await handler.unary_unary(request, context)
            case True, False:
                yield await handler.stream_unary(request, context)
            case streaming, _:
                async for response in (handler.stream_stream if streaming else handler.unary_stream)(request, context):
                    yield response

    def _checked(self, call: str, method: Method, caller: _Caller, arrived: _Arrived) -> Any:
        name = caller.name
        self._read(caller.end, arrived.size)
        if isinstance(arrived.request, _TooLong):
            what = f"{name} sent {self.me} a request for {call} of more than {method.most} bytes"
            raise LimitExceeded(what, party=name)
        if isinstance(arrived.request, _Unreadable):
            raise MalformedMessage(f"{name} sent {self.me} a request for {call} that cannot be read", party=name)
        return arrived.request

    @asynccontextmanager
    async def _translated(self, call: str, context: Context) -> AsyncIterator[None]:
        # Asked while the call lasts: of one that is over gRPC knows nothing, and the process dies of the question.
        caller, end = _identified(context), context.peer()
        began, code = time.monotonic(), JobCancelled.code
        try:
            yield
            code = OK
        except ComineError as error:
            code = error.code
            looked = call in _LOOKS and type(error) is UnexpectedMessage
            log = self._log.info if looked else self._log.warning
            log("call refused", call=call, **_named(caller, end), error=error)
            await self._abort(context, error)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            code = InternalError.code
            self._log.error("call failed", call=call, **_named(caller, end), error=error)
            fault = f"{self.me} met a fault of its own; the log of {self.me} has the details"
            await self._abort(context, InternalError(fault, party=self.me))
        finally:
            role, name = caller or (None, "")
            self._answered(role, name, call, code, time.monotonic() - began)

    async def _abort(self, context: Context, error: ComineError) -> None:
        error = placeless(error, self.me)
        # What a caller wrote may be in both, and gRPC fails with no code on what headers cannot hold.
        party = error.party if error.party is not None and NAME.fullmatch(error.party) else self.me
        metadata = (("comine-code", error.code), ("comine-party", party))
        await context.abort(status_of(error), _sendable(error.message), metadata)


async def _first(arriving: AsyncIterator[_Arrived]) -> _Arrived:
    """The request; where there is none, what stands for one that cannot be read."""
    async for arrived in arriving:  # the first ends it
        return arrived
    return _Arrived(_Unreadable(), 0)  # no default of `anext`, which CPython 3.11 spoils where it is a tuple


def _sendable(sentence: str) -> str:
    return sentence[:MAX_DETAILS].encode("utf-8", "replace").decode()
