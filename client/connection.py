"""A client's connection to a node: mutual TLS, deadlines, and another try where the network fails."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc

from client.pseudonym import PSEUDONYM_BYTES
from crypto.primitives.randomness import Randomness
from link.errors import (
    ComineError,
    ConfigurationError,
    IdentityError,
    LimitExceeded,
    PeerError,
    ProtocolViolation,
)
from link.pki.identity import Identity
from link.relay.address import shown
from link.transports.grpc_channel import dial_blocking
from link.transports.grpc_errors import ConnectionBroken, explained, silent
from protos.v1.frequency_pb2 import (
    BatchReceipt,
    Collection,
    DescribeCollectionRequest,
    DomainRequest,
    ReportBatch,
)
from protos.v1.frequency_pb2_grpc import FrequencyEstimationStub

T = TypeVar("T")

DEADLINE_S: Final = 30.0
ATTEMPTS: Final = 5
IN_FLIGHT: Final = 8
MAX_LABELS_BYTES: Final = 1 << 30
BACKOFF_S: Final = 0.2  # before the second try; doubled before each later one
MOST_BACKOFF_S: Final = 10.0


class Connection:
    """Calls to the frequency service of one node. Every fault comes out as a `ComineError` that names the node.

    Args:
        identity: The client's, or gateway's.
        party: Whom the other end must prove to be.
        address: HOST:PORT.
        deadline_s: For one answer.
        attempts: How often a call is tried, where the connection breaks.
    """

    def __init__(
        self,
        identity: Identity,
        party: str,
        address: str,
        *,
        deadline_s: float = DEADLINE_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        if deadline_s <= 0 or attempts < 1:
            raise ConfigurationError("a connection needs a deadline above 0 and one attempt at least")
        self.party, self.address = party, address
        self._deadline_s, self._attempts = deadline_s, attempts
        self._channel = dial_blocking(identity, party, address)
        self._service: Any = FrequencyEstimationStub(self._channel)

    @classmethod
    def open(
        cls,
        party: str,
        address: str,
        *,
        ca: Path,
        certificate: Path,
        key: Path,
        deadline_s: float = DEADLINE_S,
        attempts: int = ATTEMPTS,
    ) -> Self:
        """A connection with the files that `comine pki request NAME --role client` and `comine pki sign` made.

        Raises:
            ConfigurationError: A file is missing, or others can read the key, or the certificate has another role.
            IdentityError: The certificate is not valid.
        """
        identity = Identity.load(ca, certificate, key)
        if identity.role != "client":
            raise ConfigurationError(
                f"{certificate} is a {identity.role}'s certificate, and reports come from clients; ask for one with: "
                "comine pki request NAME --role client"
            )
        return cls(identity, party, address, deadline_s=deadline_s, attempts=attempts)

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def describe(self, collection: str) -> Collection:
        """A collection as it stands.

        Raises:
            PeerError: The node cannot be reached.
            ComineError: What it answers instead.
        """
        request = DescribeCollectionRequest(collection=collection)
        found: Collection = self._tried(lambda: self._service.Describe(request, timeout=self._deadline_s))
        return found

    def labels(self, collection: str) -> bytes:
        """The labels of a collection's domain, as lines.

        Raises:
            LimitExceeded: They are more than 1 GiB.
            ComineError: As `describe`.
        """
        return self._tried(lambda: self._labels(collection))

    def submit(self, batches: Iterable[ReportBatch], in_flight: int = IN_FLIGHT) -> Iterator[BatchReceipt]:
        """Sends batches and yields a receipt for each, in whatever order the node gives them.

        Batches are taken from the iterable as room for them is made. Where the connection breaks, those without a
        receipt are sent again, bit for bit; the node counts none of their reports twice.

        Args:
            batches: Their sequence numbers are given here: 0, 1, …
            in_flight: How many are on their way at once.

        Raises:
            ProtocolViolation: A receipt is for no batch that is on its way, or has not a status for each report.
            ComineError: As `describe`.
        """
        source, numbers = iter(batches), itertools.count()
        waiting: dict[int, ReportBatch] = {}
        failures = 0
        while True:
            try:
                for receipt in self._stream(source, numbers, waiting, in_flight):
                    failures = 0
                    yield receipt
                return
            except PeerError as error:
                failures += 1
                if not _may_pass(error) or failures >= self._attempts:
                    raise
                time.sleep(_pause(failures))

    def _stream(
        self, source: Iterator[ReportBatch], numbers: Iterator[int], waiting: dict[int, ReportBatch], in_flight: int
    ) -> Iterator[BatchReceipt]:
        """One stream: first what waits for a receipt since an earlier one, then what is new."""
        requests: queue.SimpleQueue[ReportBatch | None] = queue.SimpleQueue()
        answers: queue.SimpleQueue[BatchReceipt | grpc.RpcError | None] = queue.SimpleQueue()
        call = self._service.Submit(iter(requests.get, None))

        def listen() -> None:
            try:
                for receipt in call:
                    answers.put(receipt)
                answers.put(None)
            except grpc.RpcError as error:
                answers.put(error)

        for unanswered in waiting.values():
            requests.put(unanswered)
        listener = threading.Thread(target=listen, name="receipts", daemon=True)
        listener.start()
        try:
            ended = False
            while True:
                while not ended and len(waiting) < in_flight:
                    batch = next(source, None)
                    if batch is None:
                        ended = True
                        break
                    batch.sequence = next(numbers)
                    waiting[batch.sequence] = batch
                    requests.put(batch)
                if not waiting:
                    requests.put(None)
                    listener.join(self._deadline_s)  # the node ends the stream once its input has ended
                    return
                try:
                    answer = answers.get(timeout=self._deadline_s)
                except queue.Empty:
                    raise silent(self.party, self.address) from None
                if answer is None:
                    raise ConnectionBroken(
                        f"{self.party} at {shown(self.address)} ended the stream of reports before all had a receipt; "
                        "deliver them again",
                        party=self.party,
                    )
                if isinstance(answer, grpc.RpcError):
                    raise explained(answer, self.party, self.address, "client")
                yield self._checked(answer, waiting)
        finally:
            requests.put(None)
            call.cancel()
            listener.join()

    def _checked(self, receipt: BatchReceipt, waiting: dict[int, ReportBatch]) -> BatchReceipt:
        batch = waiting.pop(receipt.sequence, None)
        if batch is None:
            raise ProtocolViolation(f"{self.party} sent a receipt for reports that it was not sent", party=self.party)
        if receipt.statuses and len(receipt.statuses) * PSEUDONYM_BYTES != len(batch.pseudonyms):
            raise ProtocolViolation(f"{self.party} sent a receipt that is not for as many reports", party=self.party)
        return receipt

    def _labels(self, collection: str) -> bytes:
        pieces, size = [], 0
        for part in self._service.Domain(DomainRequest(collection=collection), timeout=self._deadline_s):
            pieces.append(part.labels)
            size += len(part.labels)
            if size > MAX_LABELS_BYTES:
                raise LimitExceeded(f"{self.party} sent labels of more than 1 GiB for '{collection}'", party=self.party)
        return b"".join(pieces)

    def _tried(self, call: Callable[[], T]) -> T:
        """The answer to a call that may be repeated."""
        for failures in itertools.count(1):
            try:
                return call()
            except grpc.RpcError as error:
                found = explained(error, self.party, self.address, "client")
                if not _may_pass(found) or failures >= self._attempts:
                    raise found from None
                time.sleep(_pause(failures))
        raise AssertionError


def _may_pass(error: ComineError) -> bool:
    """Whether another try may end otherwise: a connection broke, or a node said that it stops."""
    return isinstance(error, PeerError) and not isinstance(error, IdentityError)


def _pause(failures: int) -> float:
    """Seconds until the next try: doubled each time, and spread, so that many clients do not come back at once."""
    longest = min(BACKOFF_S * (1 << failures - 1), MOST_BACKOFF_S)
    return longest * (0.5 + Randomness.from_os().below(1000) / 2000)
