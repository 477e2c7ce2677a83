"""A node's frequency service as the protocol describes it, in memory: what clients are tested against."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from client.connection import Connection
from ldp.documents import document
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from link.errors import InputDataError
from link.pki.authority import Authority
from link.transports.grpc_channel import SERVER_OPTIONS, server_credentials
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import (
    CLOSED,
    COUNTED,
    DUPLICATE,
    EARLY,
    FOREIGN,
    LATE,
    MALFORMED,
    OPEN,
    REFUSED,
    BatchReceipt,
    Collection,
    DomainPart,
    ReportBatch,
    Round,
)
from protos.v1.frequency_pb2_grpc import FrequencyEstimationServicer, add_FrequencyEstimationServicer_to_server

HOUR = 3600.0
BEGIN = 1_800_000_000.0  # a whole number of hours
PARTY = "north"


def spec_of(mechanism: str, epsilon: object, length: str | None = None, **more: Any) -> dict[str, Any]:
    """A specification in the form that travels."""
    window = None if length is None else {"length": length, "grace": "0s", "start": None, "periods": None}
    collection = {"mechanism": mechanism, "epsilon": str(epsilon), "parameters": {}} | more.pop("collection", {})
    return {"collection": collection, "window": window, "continual": None, **more}


class Kept:
    """One collection: rounds of an hour with one mechanism, or whatever rounds a test sets."""

    def __init__(
        self,
        name: str,
        mechanism: Mechanism[Any],
        spec: Mapping[str, Any],
        labels: Iterable[str] = (),
        grace: float = 0,
    ) -> None:
        self.name, self.mechanism, self.spec, self.grace = name, mechanism, spec, grace
        self.id = hashlib.sha256(name.encode()).digest()[:16]
        self.lines = "".join(f"{label}\n" for label in labels).encode()
        self.closed = False
        self.rounds: list[tuple[Round, Mechanism[Any]]] | None = None
        self.counted: dict[tuple[int, bytes], bytes] = {}  # by period and pseudonym
        self.received: list[tuple[int, bytes, bytes]] = []  # every report that ever came: round, pseudonym, bytes

    def round(self, number: int) -> tuple[Round, Mechanism[Any]]:
        if self.rounds is not None:
            return next(each for each in self.rounds if each[0].number == number)
        if self.spec["window"] is None:
            return announced(self.mechanism, number, opens=BEGIN, closes=0), self.mechanism
        times = {"opens": BEGIN + number * HOUR, "closes": BEGIN + (number + 1) * HOUR + self.grace}
        return announced(self.mechanism, number, **times), self.mechanism

    def open_rounds(self, now: float) -> list[Round]:
        if self.rounds is not None:
            return [each for each, _ in self.rounds if each.opens <= now < each.closes]
        if self.spec["window"] is None:
            return [self.round(0)[0]]
        current = int((now - BEGIN) // HOUR)
        rounds = (self.round(number)[0] for number in range(max(0, current - 1), current + 1))
        return [each for each in rounds if each.closes > now]

    def describe(self, now: float) -> Collection:
        return Collection(
            name=self.name,
            id=self.id,
            spec=json.dumps(self.spec).encode(),
            state=CLOSED if self.closed else OPEN,
            created=BEGIN,
            rounds=[] if self.closed else self.open_rounds(now),
            domain_digest=hashlib.sha256(self.lines).digest() if self.lines else b"",
            node=PARTY,
            now=now,
        )


def announced(mechanism: Mechanism[Any], number: int, **more: Any) -> Round:
    fields = {"period": number, "step": number, "purpose": "publication", **more}
    return Round(number=number, mechanism=document(mechanism), fingerprint=mechanism.fingerprint, **fields)


class Node:
    """What the service does, without a network."""

    def __init__(self, *collections: Kept) -> None:
        self.now = BEGIN
        self.collections = {each.name: each for each in collections}
        self.statuses: Counter[int] = Counter()

    def submit(self, batch: ReportBatch) -> BatchReceipt:
        statuses = self._statuses(batch)
        self.statuses.update(statuses)
        shared = len(set(statuses)) == 1
        return BatchReceipt(
            sequence=batch.sequence,
            status=statuses[0] if shared else COUNTED,
            statuses=b"" if shared else bytes(statuses),
            counted=statuses.count(COUNTED),
            message="the collection is closed" if statuses[0] == REFUSED else "",
        )

    def _statuses(self, batch: ReportBatch) -> list[int]:
        names = [batch.pseudonyms[at : at + 16] for at in range(0, len(batch.pseudonyms), 16)]
        kept = self.collections.get(batch.collection)
        if kept is None or kept.closed:
            return [REFUSED] * len(names)
        asked, mechanism = kept.round(batch.round)
        if asked.opens > self.now:
            return [EARLY] * len(names)
        if asked.closes and asked.closes <= self.now:
            return [LATE] * len(names)
        try:
            reports = mechanism.read(batch.reports)
        except InputDataError as error:
            return [FOREIGN if "another" in error.message else MALFORMED] * len(names)
        assert len(reports) == len(names)
        found = []
        for place, name in enumerate(names):
            data = reports[place : place + 1].to_bytes()
            kept.received.append((batch.round, name, data))
            found.append(DUPLICATE if (asked.period, name) in kept.counted else COUNTED)
            kept.counted.setdefault((asked.period, name), data)
        return found


class Direct:
    """A connection without a network, which may lose receipts."""

    def __init__(self, node: Node, lose: Iterable[bool] = ()) -> None:
        self.node, self.party, self._lose = node, PARTY, iter(lose)

    def describe(self, name: str) -> Collection:
        return self.node.collections[name].describe(self.node.now)

    def labels(self, name: str) -> bytes:
        return self.node.collections[name].lines

    def submit(self, batches: Iterable[ReportBatch], in_flight: int = 1) -> Iterator[BatchReceipt]:
        for sequence, batch in enumerate(batches):
            batch.sequence = sequence
            receipt = self.node.submit(batch)
            if next(self._lose, False):
                raise ConnectionBroken("the receipt is lost", party=PARTY)
            yield receipt


class _Servicer(FrequencyEstimationServicer):
    """The same over gRPC; `breaks` says after how many more batches a stream breaks before its receipt."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.breaks: list[int] = []
        self.lie: BatchReceipt | None = None

    def Describe(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
        if request.collection not in self.node.collections:
            context.set_trailing_metadata((("comine-code", "E100"), ("comine-party", PARTY)))
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no collection '{request.collection}' here")
        return self.node.collections[request.collection].describe(self.node.now)

    def Domain(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
        lines = self.node.collections[request.collection].lines
        for at in range(0, len(lines), 7):
            yield DomainPart(labels=lines[at : at + 7])

    def Submit(self, request_iterator, context):  # type: ignore[no-untyped-def]  # noqa: N802
        for batch in request_iterator:
            receipt = self.node.submit(batch)
            if self.breaks:
                self.breaks[0] -= 1
                if self.breaks[0] < 0:
                    self.breaks.pop(0)
                    context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
            yield receipt if self.lie is None else self.lie


class Served:
    """A node that listens on the loopback, and the certificates of its federation."""

    def __init__(self, node: Node) -> None:
        self.authority, self.node = Authority.create(), node
        self.servicer = _Servicer(node)
        self._server = grpc.server(ThreadPoolExecutor(4), options=SERVER_OPTIONS)
        add_FrequencyEstimationServicer_to_server(self.servicer, self._server)
        self.identity = self.authority.issue("phone", "client")
        credentials = server_credentials(self.authority.issue(PARTY, "party"))
        self.address = f"127.0.0.1:{self._server.add_secure_port('127.0.0.1:0', credentials)}"
        self._server.start()

    def connect(self, **more: Any) -> Connection:
        return Connection(self.identity, PARTY, self.address, **more)

    def stop(self) -> None:
        self._server.stop(None).wait()


@contextmanager
def served(node: Node) -> Iterator[Served]:
    found = Served(node)
    try:
        yield found
    finally:
        found.stop()


LABELS = ["north", "south", "east", "other"]


def homepages(mechanism: Mechanism[Any], name: str = "homepages", **more: Any) -> Kept:
    """A collection in rounds of an hour."""
    domain = getattr(mechanism, "domain", None)
    labels = domain.labels if isinstance(domain, Domain) and domain.labels else ()
    return Kept(name, mechanism, spec_of(mechanism.name, mechanism.epsilon, "1h"), labels, **more)
