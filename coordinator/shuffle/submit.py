"""Reports to a collection that go through shufflers: perturbed as for its node, then sealed in layers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from client.connection import ATTEMPTS, IN_FLIGHT, Connection
from client.description import Description, Round
from client.fleet_state.memo import keeps_answers
from client.labels import domain_of, fetched
from coordinator.frequency.service import check_open
from coordinator.shuffle.routes import RouteStatus, ShufflerNode, write_durably
from crypto.primitives.hashing import encode_labels
from crypto.primitives.sealed import Rows
from jobs.collections.spec import CollectionSpec
from jobs.collections.tables import MEMOISED
from ldp.mechanism import Mechanism
from ldp.shuffling.onion import wrap
from ldp.shuffling.rows import rows_of
from link.errors import ConfigurationError, InputDataError, PeerError, ResourceError
from link.pki.identity import Identity
from protos.v1.frequency_pb2 import (
    COUNTED,
    DUPLICATE,
    EARLY,
    MALFORMED,
    OVER_QUOTA,
    REFUSED,
    BatchReceipt,
    ReportBatch,
)
from protos.v1.shuffle_pb2 import NOT_TAKEN, OVER_SHARE, REPLAYED, TAKEN, UNREADABLE, WRONG_SIZE, SealedReports

MESSAGE_BYTES: Final = 3 << 20  # a shuffler takes 4 MiB
REPORT_COST: Final = 64  # which it adds to each report
_STATUS: Final[Mapping[int, int]] = {
    TAKEN: COUNTED,
    REPLAYED: DUPLICATE,
    WRONG_SIZE: MALFORMED,
    UNREADABLE: MALFORMED,
    NOT_TAKEN: REFUSED,
}
_FULL: Final = "this certificate has as many reports in the batch as it may; send more once the batch has left"


class Asked(NamedTuple):
    """What a collection asks for now.

    Attributes:
        found: The collection.
        round: The one that is open.
        mechanism: By which reports are made, the same in all rounds.
    """

    found: Description
    round: Round
    mechanism: Mechanism[Any]


def asked_by(connection: Connection, name: str) -> Asked:
    """What a collection whose reports may go through shufflers asks for.

    Raises:
        PolicyDenied: It is closed.
        ConfigurationError: It has no round now, or its rounds and reports depend on who sends them and when.
    """
    described = connection.describe(name)
    check_open(described)
    found = Description.read(described.SerializeToString(), connection.party, name)
    if found.search is not None or found.protected is not None or found.memo is not None or found.budgets is not None:
        raise _cannot(name, "asks for other reports in each round")
    asked = found.open_round(found.now or time.time())
    if asked is None:
        raise ConfigurationError(f"the collection '{name}' at {connection.party} has no round now; try again later")
    domain = domain_of(fetched(connection, found), found) if found.domain_digest else None
    mechanism = found.mechanism(asked, domain)
    if keeps_answers(mechanism):
        raise _cannot(name, "lets devices repeat their answers, by which they would be known again")
    return Asked(found, asked, mechanism)


def check_spec(spec: CollectionSpec) -> None:
    """Refuses a collection whose reports cannot go through shufflers, by its specification.

    Raises:
        ConfigurationError: Its rounds differ, or its devices repeat their answers.
    """
    section = spec.collection
    if spec.continual is not None or spec.budget is not None or section.mechanism == "prefix-extending":
        raise _cannot(section.name, "asks for other reports in each round")
    if spec.memo is not None or section.mechanism in MEMOISED:
        raise _cannot(section.name, "lets devices repeat their answers, by which they would be known again")


def _cannot(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the collection '{name}' {why}, so its reports cannot go through shufflers; take one whose rounds all have "
        "the same mechanism and fresh answers"
    )


class ShuffledConnection(Connection):
    """A connection to a collection's node by which it is described, while reports go to the first shuffler.

    Args:
        identity: The device's, or gateway's.
        party: The collection's node.
        address: HOST:PORT of it.
        collection: Its name.
        status: The route.
        first: The first shuffler.
        kept: The folder where sealed reports are kept until they have a receipt, so that the very same are sent again
            after a crash; None: they are not.

    Raises:
        ConfigurationError: The collection's reports cannot go this way.
    """

    def __init__(
        self,
        identity: Identity,
        party: str,
        address: str,
        collection: str,
        status: RouteStatus,
        first: ShufflerNode,
        kept: Path | None = None,
    ) -> None:
        super().__init__(identity, party, address)
        try:
            self._collection, self._route, self._first, self._kept = collection, status.route, first, kept
            self._keys = status.keys(identity)
            self._mechanism = asked_by(self, collection).mechanism
            if self._mechanism.report_bytes > self._route.size:
                raise ConfigurationError(
                    f"reports to '{collection}' have {self._mechanism.report_bytes:,} bytes, and those of the route "
                    f"'{self._route.name}' have {self._route.size:,}; ask its creator for another one"
                )
        except BaseException:
            self.close()
            raise

    def submit(self, batches: Iterable[ReportBatch], in_flight: int = IN_FLIGHT) -> Iterator[BatchReceipt]:  # noqa: ARG002
        """Seals batches, hands them to the first shuffler, and yields a receipt for each, in their order.

        Args:
            batches: Of the collection; others are left for later.
            in_flight: Has no effect: one batch is on its way at once.

        Raises:
            ComineError: The first shuffler cannot be reached, or broke the rules.
        """
        for sequence, batch in enumerate(batches):
            if batch.collection != self._collection:
                yield BatchReceipt(sequence=sequence, status=EARLY)
                continue
            place = self._place(batch)
            sealed = self._sealed(batch, place)
            receipt = self._sent(sequence, sealed)
            yield receipt
            # The caller that took the receipt has noted it by now, and does not send the batch again.
            if place is not None and receipt.status != EARLY:
                place.unlink(missing_ok=True)

    def _sent(self, sequence: int, sealed: Rows) -> BatchReceipt:
        size = max(1, MESSAGE_BYTES // (sealed.shape[1] + REPORT_COST))
        messages = [
            SealedReports(
                sequence=start, route=self._route.name, reports=[row.tobytes() for row in sealed[start : start + size]]
            )
            for start in range(0, len(sealed), size)
        ]
        fates: list[int] = []
        sentence = ""
        for message, receipt in zip(messages, self._tried_again(messages), strict=True):
            fates += receipt.fates or [receipt.fate] * len(message.reports)
            sentence = receipt.message or sentence
        if self._kept is None and OVER_SHARE in fates:
            sentence = sentence or _FULL
        over = OVER_QUOTA if self._kept is None else EARLY  # a device's report waits in its outbox
        statuses = bytes(over if fate == OVER_SHARE else _STATUS.get(fate, REFUSED) for fate in fates)
        counted = statuses.count(COUNTED)
        if len(set(statuses)) == 1:
            return BatchReceipt(sequence=sequence, status=statuses[0], counted=counted, message=sentence)  # type: ignore[arg-type]
        return BatchReceipt(sequence=sequence, statuses=statuses, counted=counted, message=sentence)

    def _tried_again(self, messages: list[SealedReports]) -> list[Any]:
        """The receipts; where the connection breaks, the very same reports are sent again and known again."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._first.submit(messages)
            except PeerError:
                if not left:
                    raise
                time.sleep(1.0)
        raise AssertionError

    def _sealed(self, batch: ReportBatch, place: Path | None) -> Rows:
        width = self._route.sealed_size(0)
        if place is not None and place.exists():
            try:
                return np.frombuffer(place.read_bytes(), np.uint8).reshape(-1, width)
            except OSError as error:
                raise ResourceError(f"{place} cannot be read: {error.strerror}") from None
            except ValueError:
                raise InputDataError(
                    f"{place} is damaged, so that its reports cannot be sent once more as they were; move it away, and "
                    "the device reports in a later round"
                ) from None
        rows = rows_of(self._mechanism.read(batch.reports))
        padded = np.zeros((len(rows), self._route.size), np.uint8)
        padded[:, : rows.shape[1]] = rows
        sealed = wrap(padded, self._route, self._keys)
        if place is not None:
            write_durably(place, sealed.tobytes())
        return sealed

    def _place(self, batch: ReportBatch) -> Path | None:
        if self._kept is None:
            return None
        terms = (self._route.digest, batch.collection, batch.round, batch.pseudonyms, batch.reports)
        return self._kept / f"{hashlib.sha256(encode_labels(*terms)).hexdigest()}.sealed"
