"""Routes through shufflers, from outside: they are created, looked at, emptied and retired."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc
import numpy as np

from coordinator.frequency.service import address_of
from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import KEY_BYTES, Rows, new_private_key, public_key_of
from jobs.collections.route import RouteSpec
from ldp.shuffling.route import ID_BYTES, Route, route_of
from ldp.shuffling.statement import read_key
from link.errors import ComineError, ConfigurationError, MalformedMessage, PeerError, ProtocolViolation, ResourceError
from link.files.json_text import read_json
from link.files.private_file import replace_private
from link.pki.identity import Identity
from link.transports.grpc_channel import dial_blocking
from link.transports.grpc_errors import explained
from protos.v1 import shuffle_pb2 as pb
from protos.v1.shuffle_pb2_grpc import ShufflerStub

T = TypeVar("T")

ROUTE: Final = "route.json"
KEY: Final = "collector.key"
_ANSWER_S: Final = 60.0
_BATCH_S: Final = 600.0  # for what may wait for a whole batch
_ARRIVAL_S: Final = 60.0  # for batches on their way while a route is retired
_PAUSE_S: Final = 0.2


class ShufflerNode:
    """Calls the shuffler of one node; every fault comes out as a `ComineError` that names the node.

    Args:
        identity: Who calls: a coordinator or a client.
        party: Whose node it must prove to be.
        address: HOST:PORT.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        self.party, self._address, self._role = party, address, identity.role
        self._channel = dial_blocking(identity, party, address)
        self._service: Any = ShufflerStub(self._channel)

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def create(self, route: Route) -> pb.ShuffleRoute:
        """Creates a route; the very same again gives the same answer."""
        request = pb.CreateRouteRequest(document=route.document())
        return self._answer(lambda: self._service.Create(request, timeout=_ANSWER_S))

    def describe(self, name: str) -> pb.ShuffleRoute:
        """A route as it stands."""
        request = pb.DescribeRouteRequest(route=name)
        return self._answer(lambda: self._service.Describe(request, timeout=_ANSWER_S))

    def flush(self, name: str) -> pb.ShuffleRoute:
        """Lets the batch leave now; for the first shuffler."""
        return self._answer(lambda: self._service.Flush(pb.FlushRequest(route=name), timeout=_BATCH_S))

    def retire(self, name: str) -> pb.ShuffleRoute:
        """Takes no more reports, and forgets the keys."""
        return self._answer(lambda: self._service.Retire(pb.RetireRouteRequest(route=name), timeout=_BATCH_S))

    def submit(self, messages: Sequence[pb.SealedReports]) -> list[pb.SealedReceipt]:
        """The receipts for sealed reports, one a message.

        Raises:
            ProtocolViolation: There is not one fate for each report.
        """
        receipts = self._call(lambda: list(self._service.Submit(iter(messages), timeout=_BATCH_S)))
        if [each.sequence for each in receipts] != [each.sequence for each in messages] or any(
            receipt.fates and len(receipt.fates) != len(message.reports)
            for receipt, message in zip(receipts, messages, strict=True)
        ):
            raise ProtocolViolation(f"{self.party} sent receipts that are not for what it was sent", party=self.party)
        return receipts

    def batches(self, route: Route, after: int) -> Iterator[tuple[pb.BatchHead, Rows]]:
        """The batches that have passed all shufflers, after those that are kept.

        Raises:
            MalformedMessage: One is cut, or longer than it says.
        """
        width = route.sealed_size(len(route.shufflers))
        parts = iter(self._service.Collect(pb.CollectRequest(route=route.name, after=after), timeout=_BATCH_S))
        while (part := self._call(lambda: next(parts, None))) is not None:
            head, data, size = part.head, bytearray(part.reports), part.head.reports * width
            if not part.HasField("head") or head.reports > route.maximum:
                raise self._malformed("a batch without its head, or one that is too large")
            while not part.last and len(data) <= size:
                part = self._call(lambda: next(parts, None))
                if part is None:
                    raise self._malformed("a batch that is cut")
                data += part.reports
            if len(data) != size or not part.last:
                raise self._malformed("a batch that is longer or shorter than it says")
            yield head, np.frombuffer(bytes(data), np.uint8).reshape(head.reports, width)

    def _answer(self, call: Callable[[], pb.ShuffleRoute]) -> pb.ShuffleRoute:
        return self._call(call)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except grpc.RpcError as error:
            raise explained(error, self.party, self._address, self._role) from None

    def _malformed(self, what: str) -> MalformedMessage:
        return MalformedMessage(f"the shuffler of {self.party} sent {what}", party=self.party)


@contextmanager
def nodes_of(identity: Identity, addresses: Mapping[str, str], parties: Sequence[str]) -> Iterator[list[ShufflerNode]]:
    """The shufflers of some parties for as long as the context lasts.

    Raises:
        ConfigurationError: The federation has no such party.
    """
    with ExitStack() as stack:
        nodes = [ShufflerNode(identity, party, address_of(addresses, party)) for party in parties]
        for node in nodes:
            stack.callback(node.close)
        yield nodes


@dataclass(frozen=True)
class RouteStatus:
    """A route at all its shufflers.

    Attributes:
        route: What it is.
        shufflers: How it stands at each, the first first.
    """

    route: Route
    shufflers: tuple[pb.ShuffleRoute, ...]

    def keys(self, identity: Identity) -> list[bytes]:
        """By which reports are sealed.

        Raises:
            ConfigurationError: A shuffler has retired the route.
            IdentityError: A shuffler has not signed its key.
            ProtocolViolation: A key is for another route.
        """
        for name, route_status in zip(self.route.shufflers, self.shufflers, strict=True):
            if route_status.retired:
                raise ConfigurationError(
                    f"the route '{self.route.name}' is retired at {name} and takes no more reports; ask its creator "
                    "for another one",
                    party=name,
                )
        return [read_key(each.key, self.route, hop, identity.trust) for hop, each in enumerate(self.shufflers)]

    def as_data(self) -> dict[str, Any]:
        """The same for programs."""
        route = self.route
        return {
            "schema": "comine.shuffle-route/1",
            "route": route.name,
            "collector": route.collector,
            "report_bytes": route.size,
            "minimum": route.minimum,
            "maximum": route.maximum,
            "every_seconds": route.every,
            "shufflers": [
                {
                    "party": name,
                    "batches": max(0, each.next_batch - 1),
                    "waiting": each.waiting,
                    "unsent": each.unsent,
                    "retired": each.retired,
                }
                for name, each in zip(route.shufflers, self.shufflers, strict=True)
            ],
        }


def route_status(identity: Identity, addresses: Mapping[str, str], name: str) -> RouteStatus:
    """A route by its name, from whichever party of the federation knows it, and as all its shufflers have it.

    Raises:
        ConfigurationError: No party has it, or the shufflers have different ones.
        PeerError: None has it and not all could be asked, or a shuffler cannot be reached.
    """
    route = _found(identity, addresses, name)
    with nodes_of(identity, addresses, route.shufflers) as nodes:
        statuses = [node.describe(name) for node in nodes]
    for node, each in zip(nodes, statuses, strict=True):
        if each.document != route.document():
            raise ProtocolViolation(
                f"{node.party} has another route '{name}' than {nodes[0].party}; its coordinator is to create the same "
                "route at all its shufflers",
                party=node.party,
            )
    return RouteStatus(route, tuple(statuses))


def _found(identity: Identity, addresses: Mapping[str, str], name: str) -> Route:
    """The route that all parties have that have one of that name: one party alone cannot lead reports elsewhere."""
    unreachable: list[PeerError] = []
    documents: dict[str, bytes] = {}
    for party in addresses:
        with nodes_of(identity, addresses, [party]) as (node,):
            try:
                documents[party] = node.describe(name).document
            except PeerError as error:
                unreachable.append(error)
            except ComineError:  # it has none of that name, or shuffles nothing
                continue
    if len(set(documents.values())) > 1:
        raise ConfigurationError(
            f"{' and '.join(documents)} have different routes '{name}'; ask its creator for one with a name of its own"
        )
    if documents:
        route = route_of(next(iter(documents.values())))
        if route.name != name:
            party = next(iter(documents))
            raise ProtocolViolation(f"{party} was asked for the route '{name}' and described another", party=party)
        return route
    if unreachable:
        raise unreachable[0]
    raise ConfigurationError(f"no party of the federation has a route '{name}'; ask who created it")


# -- the collector's folder ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CollectorFolder:
    """Where a route's creator keeps its document, the collector's private key, and which batches are kept.

    Attributes:
        path: The folder of the route.
    """

    path: Path

    def route(self) -> Route | None:
        """The route; None where the folder has none.

        Raises:
            ConfigurationError: The document cannot be read.
        """
        try:
            return route_of((self.path / ROUTE).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(f"{self.path / ROUTE} cannot be read: {error.strerror}") from None

    def private_key(self, route: Route) -> bytes:
        """The collector's key.

        Raises:
            ConfigurationError: The file is missing, can be read by others, or holds another key.
        """
        path = self.path / KEY
        try:
            if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigurationError(f"{path} can be read by others; run: chmod 600 {path}")
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}; batches open with it alone") from None
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES or public_key_of(key) != route.collector_key:
            raise ConfigurationError(f"{path} is not the collector's key of the route '{route.name}'")
        return key

    def prepare(self, spec: RouteSpec, size: int, collector: str) -> Route:
        """The route of a file: the one that the folder has, or a new one with a new key, which is on disk then.

        Raises:
            ConfigurationError: The folder has another route of that name.
            ResourceError: It cannot be written.
        """
        earlier = self.route()
        if earlier is not None:
            if spec.made(size, collector, earlier.collector_key, earlier.id) != earlier:
                raise ConfigurationError(
                    f"{self.path} holds another route '{earlier.name}'; give the new one another name, or name another "
                    "folder with --folder"
                )
            self.private_key(earlier)
            return earlier
        random = Randomness.from_os()
        key = new_private_key(random)
        route = spec.made(size, collector, public_key_of(key), random.bytes(ID_BYTES))
        write_durably(self.path / KEY, f"{key.hex()}\n".encode())
        write_durably(self.path / ROUTE, route.document())
        return route


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file that only its owner may read, whole or not at all; it is on disk when this returns.

    Raises:
        ResourceError: It cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_private(path, data)
    except OSError as error:
        raise ResourceError(f"{path} cannot be written: {error.strerror}") from None


def read_state(path: Path) -> dict[str, Any]:
    """A file of JSON that `write_durably` wrote; empty where there is none.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        contents = read_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        contents = None
    if not isinstance(contents, dict):
        raise ConfigurationError(f"{path} is damaged; without it nobody knows which batches were counted")
    return contents


# -- what the creator does -----------------------------------------------------------------------------------------
def create_route(identity: Identity, addresses: Mapping[str, str], route: Route) -> RouteStatus:
    """Creates a route at all its shufflers, and checks their keys.

    Raises:
        PolicyDenied: A shuffler's policy does not allow it.
        ConfigurationError: One has another route of that name.
    """
    with nodes_of(identity, addresses, route.shufflers) as nodes:
        made = RouteStatus(route, tuple(node.create(route) for node in nodes))
    made.keys(identity)
    return made


def flush_route(identity: Identity, addresses: Mapping[str, str], name: str) -> RouteStatus:
    """Lets the batch of the first shuffler leave now.

    Raises:
        PolicyDenied: It has fewer reports than the minimum, or another coordinator created the route.
    """
    found = route_status(identity, addresses, name)
    with nodes_of(identity, addresses, found.route.shufflers[:1]) as (first,):
        return replace(found, shufflers=(first.flush(name), *found.shufflers[1:]))


def retire_route(identity: Identity, addresses: Mapping[str, str], name: str) -> RouteStatus:
    """Retires a route at the first shuffler, then at each further one, once the one before has no batch left.

    Raises:
        PeerError: Batches are still on their way; the command may be repeated.
        PolicyDenied: Another coordinator created the route.
    """
    route = route_status(identity, addresses, name).route
    with nodes_of(identity, addresses, route.shufflers) as nodes:
        for hop, node in enumerate(nodes):
            if hop:
                _await_arrival(nodes[hop - 1], name)
            node.retire(name)
        return RouteStatus(route, tuple(node.describe(name) for node in nodes))


def _await_arrival(node: ShufflerNode, name: str) -> None:
    until = time.monotonic() + _ARRIVAL_S
    while node.describe(name).unsent:
        if time.monotonic() > until:
            raise PeerError(
                f"batches of the route '{name}' are still on their way from {node.party}; retire it again later",
                party=node.party,
            )
        time.sleep(_PAUSE_S)
