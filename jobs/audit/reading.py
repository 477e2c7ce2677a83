"""An audit log as people read it: `comine audit show`. Nothing is checked here; see `jobs.audit.verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from google.protobuf.message import DecodeError
from pydantic import BaseModel, ConfigDict, Field

from jobs.audit.catalogue import read_event
from jobs.audit.entry import clock, read
from jobs.audit.events import (
    Approved,
    CertificateChanged,
    Charged,
    Ended,
    Event,
    HeadLost,
    HistoryRestored,
    LineTorn,
    LogBegan,
    LogFollows,
    NodeStarted,
    NodeStopped,
    PlanAsked,
    Proposed,
    Refused,
    Released,
    RulesHidden,
    SessionBegan,
    SessionLost,
    Started,
    Transcript,
    ValuesOpened,
)
from jobs.audit.finding import printable
from jobs.audit.service_events import (
    BatchClosed,
    BatchForwarded,
    CollectionClosed,
    CollectionCreated,
    CollectionDeleted,
    CollectionEvent,
    CollectionLost,
    EstimatesRead,
    JointReleaseBegan,
    QueryDecided,
    QueryRefused,
    ReleaseRefused,
    RoundEnded,
    RouteCreated,
    RouteEvent,
    RouteLost,
    RouteRetired,
    TableReleased,
)
from link.errors import ConfigurationError, UsageError
from protos.v1.link_pb2 import Receipt, SignedReceipt

MIN_PREFIX = 4


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShownEntry(_Part):
    """One line of a log, as it stands there."""

    line: int = Field(ge=1)
    seq: int | None = Field(description="Null where the line is no entry.")
    time: str | None = Field(description="UTC.")
    event: str | None
    summary: str = Field(description="The entry in words.")
    fields: dict[str, Any] | None = Field(description="As documented for the event.")


class LogDocument(_Part):
    """What `comine audit show --json` prints."""

    schema_: Literal["comine.audit/1"] = Field(alias="schema")
    file: str
    entries: list[ShownEntry]


def shown(path: Path, *, job: str | None = None, last: int | None = None) -> LogDocument:
    """The lines of a log.

    Args:
        path: The log.
        job: Only entries of the job whose id begins so.
        last: Only so many, the last ones.

    Raises:
        ConfigurationError: The file cannot be read.
        UsageError: `job` is not the beginning of an id.
    """
    if job is not None and re.fullmatch(rf"[0-9a-f]{{{MIN_PREFIX},64}}", job) is None:
        raise UsageError(f"--job takes a job's id, or its first {MIN_PREFIX} or more hexadecimal digits")
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigurationError(f"the audit log {path} cannot be read ({error.strerror}); check the path") from None
    entries = [entry for entry in _entries(lines) if job is None or _is_of(entry, job)]
    return LogDocument(schema="comine.audit/1", file=str(path), entries=entries if last is None else entries[-last:])


def _entries(lines: list[bytes]) -> Iterator[ShownEntry]:
    for number, raw in enumerate(lines, start=1):
        if not raw:
            continue
        try:
            entry = read(raw)
        except ValueError as error:
            words = f"no entry: {error}"
            yield ShownEntry(line=number, seq=None, time=None, event=None, summary=words, fields=None)
            continue
        try:
            words = printable(summary(read_event(entry.event, entry.fields)))
        except (ValueError, DecodeError) as error:
            words = str(error)
        yield ShownEntry(
            line=number,
            seq=entry.seq,
            time=clock(entry.time),
            event=entry.event,
            summary=words,
            fields=dict(entry.fields),
        )


def _is_of(entry: ShownEntry, job: str) -> bool:
    return entry.fields is not None and str(entry.fields.get("job", "")).startswith(job)


def summary(event: Event) -> str:
    """An event in words, without the job that it belongs to."""
    match event:
        case LogBegan():
            return f"log of {event.party}, format {event.format}"
        case CertificateChanged():
            return "another certificate signs from here on"
        case LineTorn():
            return f"{event.size_bytes} bytes of an interrupted write were set aside"
        case HeadLost():
            return "the head file was lost: whether lines had been cut off is not known"
        case LogFollows():
            return f"an earlier log, {event.log.hex()[:12]}, known up to its entry {event.seq}"
        case HistoryRestored():
            return f"{event.jobs} jobs and {event.starts} charges were lost from the job database, and came from here"
        case NodeStopped():
            return "in order"
        case NodeStarted():
            return f"comine {event.software}, wire {event.wire}"
        case PlanAsked():
            return f"by {event.coordinator}, specification {event.spec_digest.hex()[:12]}"
        case Proposed():
            return f"by {event.coordinator}"
        case Approved():
            return f"by {event.by}"
        case Refused():
            return f"by {event.by}: {event.reason}"
        case Started():
            return f"attempt {event.attempt}, {len(event.approvals)} approvals"
        case Charged():
            local = "" if event.local_epsilon is None else f", {event.local_epsilon} in each report"
            cost = f"ε = {event.epsilon}, δ = {event.delta}{local}"
            return f"'{event.dataset}' for attempt {event.attempt}: {cost} ({event.model})"
        case RulesHidden():
            return f"{event.rules} in '{event.dataset}'"
        case SessionBegan():
            return f"{event.session.hex()[:12]} with {', '.join(event.parties)}"
        case SessionLost():
            return f"{event.session.hex()[:12]}: what was opened in it was not recorded any more"
        case ValuesOpened():
            return "; ".join(
                f"{o.number} of '{o.label}' ({o.size_bytes} bytes) to {', '.join(o.recipients)}" for o in event.openings
            )
        case Transcript():
            return _transcript(event)
        case Released():
            return f"to {event.to}" + ("" if event.result_mac is None else ", with the result's digest")
        case Ended():
            where = "" if event.error_party is None else f" at {event.error_party}"
            where += "" if event.told_by is None else f", told by {event.told_by}"
            return event.state if event.error_code is None else f"{event.state}: {event.error_code}{where}"
        case CollectionEvent():
            return f"'{event.collection}'{_of_collection(event)}"
        case RouteEvent():
            return f"'{event.route}'{_of_route(event)}"
        case QueryDecided():
            how = "answered" if event.denied is None else f"denied ({event.denied})"
            return f"{event.coordinator} asked '{event.dataset}': {event.query}; {how}, number {event.number}"
        case QueryRefused() | ReleaseRefused():
            return f"{event.coordinator} asked for '{event.dataset}': {event.code}, {event.reason}"
        case JointReleaseBegan():
            return f"'{event.dataset}' for {event.coordinator}: job {event.job.hex()[:12]}, number {event.number}"
        case TableReleased():
            k = "" if event.k is None else f", k = {event.k}"
            what = f"{event.rows} rows of {', '.join(event.columns)} ({event.algorithm}{k})"
            return f"'{event.dataset}' to {event.coordinator}: {what}" + (", with its report" if event.report else "")
        case _:
            raise AssertionError(f"the event '{event.event}' has no words")


def _of_collection(event: CollectionEvent) -> str:
    match event:
        case CollectionCreated():
            return f" by {event.coordinator}, specification {event.spec_digest.hex()[:12]}"
        case CollectionClosed() | CollectionDeleted():
            return f" by {event.by}"
        case CollectionLost():
            return ": the node's database has nothing of it any more"
        case RoundEnded():
            return f", round {event.round}: {event.reports} reports"
        case EstimatesRead():
            return f", round {event.round} of {event.reports} reports, to {event.coordinator}"
        case _:
            raise AssertionError(f"the event '{event.event}' has no words")


def _of_route(event: RouteEvent) -> str:
    match event:
        case RouteCreated():
            return f" by {event.coordinator}, document {event.document_digest.hex()[:12]}"
        case RouteLost():
            return ": the node's database has nothing of it any more"
        case BatchClosed():
            left = f"{event.dropped} dropped, {event.withheld} withheld, {event.forwarded} forwarded"
            return f", batch {event.batch}: {event.received} reports came, {left}"
        case BatchForwarded():
            return f", batch {event.batch}: {event.reports} reports to {event.to}"
        case RouteRetired():
            return f" by {event.by}, {event.discarded} reports discarded"
        case _:
            raise AssertionError(f"the event '{event.event}' has no words")


def _transcript(event: Transcript) -> str:
    def frames(raw: bytes) -> str:
        receipt = Receipt.FromString(SignedReceipt.FromString(raw).receipt)
        return f"{sum(h.frames for h in receipt.sent)} frames sent, {sum(h.frames for h in receipt.received)} received"

    words = "; ".join(f"{peer}: {frames(account.mine)}" for peer, account in event.peers.items())
    return words if event.complete else f"incomplete; {words}"


def job_of(entry: ShownEntry) -> str:
    """The job that an entry belongs to, in hexadecimal; empty where it belongs to none."""
    return str((entry.fields or {}).get("job", ""))
