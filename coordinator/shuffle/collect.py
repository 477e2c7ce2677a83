"""The collector's end of a route: batches are checked, opened, counted by a collection's node, and accounted for.

A batch is counted once, whatever is interrupted. What is written before it is handed over says in which round, and a
report's pseudonym follows from the batch and its place in it; so when it is handed over again, the node knows each
report that it has, and a report whose round has ended meanwhile is late and not counted in another one.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from client.connection import Connection
from client.fleet import BATCH, MAX_BATCH_BYTES
from client.outcome import reason
from client.pseudonym import PSEUDONYM_BYTES
from coordinator.shuffle.routes import CollectorFolder, ShufflerNode, read_state, write_durably
from coordinator.shuffle.submit import Asked, asked_by
from crypto.primitives.hashing import derive_key
from crypto.primitives.sealed import Rows
from jobs.collections.spec import CollectionSpec
from ldp.accounting.batches import Batch
from ldp.mechanism import Mechanism
from ldp.reports import Reports
from ldp.shuffling.collecting import Collected, Collecting
from ldp.shuffling.route import Route
from ldp.shuffling.rows import reports_in
from ldp.shuffling.statement import DROPPED
from link.errors import ConfigurationError, PolicyDenied
from link.pki.trust import Trust
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, LATE, ReportBatch
from protos.v1.shuffle_pb2 import BatchStatement

STATE: Final = "collected.json"


@dataclass(frozen=True)
class Privacy:
    """What the guarantee assumes.

    Attributes:
        delta: δ of the guarantee.
        colluding: The share of reports by those who collude with somebody who sees the result, or made up.
    """

    delta: float = 1e-6
    colluding: float = 0.0


@dataclass(frozen=True)
class Counted:
    """What became of one batch.

    Attributes:
        batch: Its number.
        round: Of the collection, to which it counts.
        received: Reports that came to the first shuffler.
        dropped: Of these, by shufflers, the collector and the check of reports, by the reason.
        senders: Certificates from which the reports of the batch came, as the first shuffler says.
        counted: Reports that the node has.
        late: Those whose round had ended.
        refused: Those that it refused.
        local_epsilon: ε of each report by itself.
        epsilon: ε of the shuffled batch, with the δ that was asked for; None where no report is left.
        n: Reports that hide each other.
        sentences: Why reports were refused.
    """

    batch: int
    round: int
    received: int
    dropped: dict[str, int]
    senders: int
    counted: int
    late: int
    refused: int
    local_epsilon: float
    epsilon: float | None
    n: int
    sentences: tuple[str, ...] = field(default=())

    def as_data(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


def collect(
    last: ShufflerNode,
    connection: Connection,
    gateway: str,
    name: str,
    folder: CollectorFolder,
    trust: Trust,
    privacy: Privacy,
) -> Iterator[Counted]:
    """Fetches the batches that wait, and hands their reports to a collection, one batch after another.

    Args:
        last: The last shuffler, called by the collector.
        connection: To the collection's node, as a gateway of it.
        gateway: The name of the gateway's certificate.
        name: The collection.
        folder: Of the route.
        trust: Whom the collector believes.
        privacy: What the guarantee assumes.

    Raises:
        PolicyDenied: The collection's node refuses all reports of a batch.
        ConfigurationError: The folder has no route, its batches go to another collection or through another gateway,
            or the collection's reports have another size.
        IdentityError: A statement is not signed by its shuffler.
        ProtocolViolation: The shufflers' statements do not agree; the sentence names one.
        ComineError: A node cannot be reached or refuses; what was begun is ended by the next call.
    """
    route = folder.route()
    if route is None:
        raise ConfigurationError(f"{folder.path} holds no route; create it with: comine shuffle create ROUTE")
    asked = asked_by(connection, name)
    if asked.mechanism.report_bytes > route.size:
        raise ConfigurationError(
            f"reports to '{name}' have {asked.mechanism.report_bytes:,} bytes, and those of the route '{route.name}' "
            f"have {route.size:,}"
        )
    progress = _Progress.of(folder, asked, gateway)
    collecting = Collecting(route, folder.private_key(route), trust)
    for head, sealed in last.batches(route, progress.kept):
        if head.route != route.digest or head.batch != progress.kept + 1:
            raise ConfigurationError(
                f"{last.party} sent batch {head.batch} of '{route.name}', and {progress.kept + 1} is the next one; "
                f"check that {folder.path} is the folder of this route"
            )
        opened = collecting.open(head.batch, sealed, head.statements)
        number, period = progress.begin(head.batch, asked)
        counted = _handed_over(connection, route, folder, opened, head.batch, asked, (number, period), privacy)
        if counted.refused and not counted.counted + counted.late:
            progress.abandon()
            raise PolicyDenied(
                f"{connection.party} refused all {counted.refused:,} reports of batch {head.batch}, which waits: "
                f"{'; '.join(counted.sentences)}",
                party=connection.party,
            )
        progress.end(head.batch)
        yield counted


def check_gateway(spec: CollectionSpec, gateway: str, least: int) -> None:
    """Refuses a certificate through which not even the smallest batch would be counted: its reports would be lost.

    Args:
        spec: The collection's.
        gateway: The name of the certificate.
        least: Reports of a batch.

    Raises:
        ConfigurationError: The collection does not have it as a gateway, or for fewer clients.
    """
    quota = spec.access.gateways.get(gateway, 0)
    if quota < least:
        raise ConfigurationError(
            f"the collection '{spec.name}' takes {quota:,} reports of the gateway '{gateway}' in a period, and a batch "
            f"has {least:,} at least; name the certificate of a gateway that its [access] allows more"
        )


@dataclass
class _Progress:
    """Which batches are counted, on disk.

    Attributes:
        folder: Where.
        contents: The file's.
    """

    folder: CollectorFolder
    contents: dict[str, Any]

    @classmethod
    def of(cls, folder: CollectorFolder, asked: Asked, gateway: str) -> _Progress:
        bound = {"collection": asked.found.id.hex(), "mechanism": asked.mechanism.fingerprint.hex(), "gateway": gateway}
        contents = read_state(folder.path / STATE) or {**bound, "kept": 0, "begun": None}
        if any(contents.get(key) != value for key, value in bound.items()):
            raise ConfigurationError(
                f"batches of {folder.path} went to another collection or through another gateway before; with this one "
                "reports could be counted twice"
            )
        return cls(folder, contents)

    @property
    def kept(self) -> int:
        return int(self.contents["kept"])

    def begin(self, batch: int, asked: Asked) -> tuple[int, int]:
        """The round and period to which a batch counts, as they were when it was first handed over."""
        if self.contents["begun"] is None:
            self.contents["begun"] = {"batch": batch, "round": asked.round.number, "period": asked.round.period}
            self._write()
        begun = self.contents["begun"]
        return int(begun["round"]), int(begun["period"])

    def abandon(self) -> None:
        """Forgets a batch of which nothing was counted; before the first one, also where it was to go."""
        if self.kept:
            self.contents["begun"] = None
            self._write()
        else:
            (self.folder.path / STATE).unlink()

    def end(self, batch: int) -> None:
        self.contents |= {"kept": batch, "begun": None}
        self._write()

    def _write(self) -> None:
        write_durably(self.folder.path / STATE, json.dumps(self.contents).encode())


def _handed_over(
    connection: Connection,
    route: Route,
    folder: CollectorFolder,
    opened: Collected,
    batch: int,
    asked: Asked,
    when: tuple[int, int],
    privacy: Privacy,
) -> Counted:
    mechanism, (number, period) = asked.mechanism, when
    reports, valid = padded_reports(opened.reports, mechanism)
    key = derive_key(folder.private_key(route), "pseudonyms of a collector", route.digest, batch, period)
    names = [hmac.digest(key, place.to_bytes(8, "big"), "sha256")[:PSEUDONYM_BYTES] for place in range(len(reports))]
    size = min(BATCH, max(1, MAX_BATCH_BYTES // (mechanism.report_bytes + PSEUDONYM_BYTES)))
    batches = (
        ReportBatch(
            collection=asked.found.name,
            round=number,
            pseudonyms=b"".join(names[start : start + size]),
            reports=reports[start : start + size].to_bytes(),
        )
        for start in range(0, len(reports), size)
    )
    tally: dict[int, int] = {}
    sentences: dict[str, None] = {}
    for receipt in connection.submit(batches):
        length = min(size, len(reports) - receipt.sequence * size)
        for status in receipt.statuses or [receipt.status] * length:
            tally[status] = tally.get(status, 0) + 1
            if status not in (COUNTED, DUPLICATE, LATE):
                sentences[reason(status, receipt.message)] = None
    counted, late = tally.get(COUNTED, 0) + tally.get(DUPLICATE, 0), tally.get(LATE, 0)
    shuffled = Batch(mechanism, len(reports), privacy.colluding) if len(reports) else None
    return Counted(
        batch=batch,
        round=number,
        received=opened.statements[0].received,
        dropped=_dropped(opened, int(np.count_nonzero(~valid))),
        senders=opened.statements[0].senders,
        counted=counted,
        late=late,
        refused=len(reports) - counted - late,
        local_epsilon=mechanism.epsilon,
        epsilon=None if shuffled is None else shuffled.guarantee(privacy.delta).epsilon,
        n=0 if shuffled is None else shuffled.n,
        sentences=tuple(sentences),
    )


def padded_reports(rows: Rows, mechanism: Mechanism[Any]) -> tuple[Reports, NDArray[np.bool_]]:
    """The reports that honest clients can have sent, padded with zeros to the route's size.

    Args:
        rows: Shape (n, `route.size`).
        mechanism: Whose reports these are to be.

    Returns:
        Those, and which rows they are, shape (n,).
    """
    width = mechanism.report_bytes
    padded: NDArray[np.bool_] = np.logical_not(np.any(rows[:, width:], axis=1))
    reports, valid = reports_in(rows[padded][:, :width], mechanism)
    good = padded.copy()
    good[padded] = valid
    return reports, good


def _dropped(opened: Collected, malformed: int) -> dict[str, int]:
    """How many reports of a batch did not arrive, and why; reasons without any are left out."""

    def of(statement: BatchStatement, reason: str) -> int:
        return int(getattr(statement, reason))

    found = {each: sum(of(statement, each) for statement in opened.statements) for each in (*DROPPED, "withheld")}
    found["replayed"] += opened.replayed
    found["unreadable"] += opened.unreadable
    found["malformed"] = malformed
    return {why: number for why, number in found.items() if number}
