"""How a job stands: by its folder, and by what its parties say now."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from coordinator.jobs.client import PartyClient
from coordinator.jobs.lifecycle import Job, Stand, State, ended
from coordinator.jobs.records.last_events import NAMES
from coordinator.jobs.records.store import JobFolder, Record, Store
from coordinator.member import load_federation
from jobs.documents.job_status import JobAct, JobDocument, JobError, JobLine, JobList, PartyStatus
from link.errors import ComineError
from link.files.printable import one_line
from link.pki.identity import Identity
from protos.v1.control_pb2 import APPROVED, Approval, JobEvent, Release

_ASKED: Final = 64  # of the jobs of a list that wait, the newest
_OPEN: Final = frozenset({"awaiting-approval", "approved", "running", "releasing"})


class _AtParty(NamedTuple):
    """Where a job stands at one party, and what it has cost there; 0 where that is not known."""

    state: str
    bytes_sent: int = 0
    bytes_received: int = 0


async def job_status(folder: JobFolder, identity: Identity, addresses: Mapping[str, str]) -> JobDocument:
    """How a job stands; parties of a job that goes on are asked, for a few seconds at most.

    Raises:
        ConfigurationError: The folder is not that of a job.
    """
    record = folder.record()
    answers: dict[str, JobEvent | ComineError] = {}
    if not record.job.over:
        answers = await look(record, identity, addresses)
        record = folder.record()
    return describe(record, driven=folder.driven, answers=answers)


async def look(record: Record, identity: Identity, addresses: Mapping[str, str]) -> dict[str, JobEvent | ComineError]:
    """What each party says of a job now, or why it says nothing."""

    async def ask(party: str) -> JobEvent | ComineError:
        client = PartyClient(identity, party, addresses[party])
        try:
            return await client.look(record.id)
        except ComineError as error:
            return error
        finally:
            await client.close()

    parties = record.spec.job.parties
    return dict(zip(parties, await asyncio.gather(*map(ask, parties)), strict=True))


def describe(record: Record, *, driven: bool, answers: Mapping[str, JobEvent | ComineError]) -> JobDocument:
    """A job as its folder has it, with what its parties answered."""
    job, spec = record.job, record.spec
    return JobDocument(
        schema="comine.job/1",
        job_id=record.id.hex(),
        name=record.name,
        task=spec.job.task,
        spec_digest=spec.digest.hex(),
        state=job.state.value,
        created=when(record.created),
        expires=when(job.expires),
        until=None if job.over else when(job.until),
        driven=driven and not job.over,
        waits_for=[] if job.over else list(job.waits_for),
        attempt=job.attempt,
        lost=job.lost,
        error=_error(job),
        out=None if record.out is None else str(record.out),
        out_problem=record.out_problem,
        acts=[JobAct.model_validate({"at": when(act.at), "what": act.what, "by": act.by}) for act in record.acts],
        parties={party: _party(record, party, answers.get(party)) for party in spec.job.parties},
    )


def job_list(store: Store) -> JobList:
    """All jobs of a store, newest first."""
    lines, unreadable = [], []
    for folder in store.jobs():
        try:
            record = folder.record()
        except ComineError:
            unreadable.append(str(folder.path))
            continue
        job = record.job
        lines.append(
            JobLine(
                job_id=folder.id,
                name=record.name,
                task=record.spec.job.task,
                state=job.state.value,
                created=when(record.created),
                driven=not job.over and folder.driven,
                waits_for=[] if job.over else list(job.waits_for),
                turns={},
                error=_error(job),
                parties=list(job.parties),
            )
        )
    return JobList(schema="comine.jobs/1", jobs=lines, unreadable=unreadable)


async def listed(store: Store, federation: Path) -> JobList:
    """All jobs of a store, newest first; of those whose turn has to come the parties are asked.

    Args:
        store: The coordinator's jobs.
        federation: The federation file.
    """
    found = job_list(store)
    if any(line.state == "approved" for line in found.jobs):
        with contextlib.suppress(ComineError):  # jobs are listed also where the certificate has expired
            known, identity = load_federation(federation)
            return await with_turns(found, identity, known.addresses)
    return found


async def with_turns(found: JobList, identity: Identity, addresses: Mapping[str, str]) -> JobList:
    """A list with what parties say of the turns for which jobs wait; each is asked for a few seconds at most.

    Args:
        found: The list.
        identity: The coordinator.
        addresses: HOST:PORT of every party that can be asked.
    """
    waiting = [line for line in found.jobs if line.state == "approved"][:_ASKED]
    async with AsyncExitStack() as stack:
        clients = dict[str, PartyClient]()
        for party in sorted({party for line in waiting for party in line.parties} & addresses.keys()):
            clients[party] = await stack.enter_async_context(PartyClient(identity, party, addresses[party]))

        async def ask(job_id: str, party: str) -> str:
            with contextlib.suppress(ComineError):
                event = await clients[party].look(bytes.fromhex(job_id))
                return one_line(event.step) if event.state == APPROVED else ""
            return ""

        async def asked(line: JobLine) -> JobLine:
            parties = [party for party in line.parties if party in clients]
            said = await asyncio.gather(*(ask(line.job_id, party) for party in parties))
            turns = {party: step for party, step in zip(parties, said, strict=True) if step}
            return line.model_copy(update={"turns": turns})

        lines = dict(zip((line.job_id for line in waiting), await asyncio.gather(*map(asked, waiting)), strict=True))
    return found.model_copy(update={"jobs": [lines.get(line.job_id, line) for line in found.jobs]})


def as_data(document: JobDocument | JobList) -> dict[str, Any]:
    """A document as JSON values."""
    return document.model_dump(mode="json", by_alias=True)


def _party(record: Record, party: str, answer: JobEvent | ComineError | None) -> PartyStatus:
    event = answer if isinstance(answer, JobEvent) else JobEvent()
    at_party = _reported(event) if isinstance(answer, JobEvent) else _known(record, party)
    approval = Approval.FromString(record.approvals[party].approval) if party in record.approvals else None
    return PartyStatus(
        state=at_party.state,
        asked=isinstance(answer, JobEvent),
        approved_by=None if approval is None else one_line(approval.by),
        approved=None if approval is None else when(approval.decided),
        step=one_line(event.step),
        done=event.done,
        total=event.total,
        bytes_sent=at_party.bytes_sent,
        bytes_received=at_party.bytes_received,
        waits_for=_waits_for(record.job, party, record.job.stands[party]),
        problem=answer.message if isinstance(answer, ComineError) else _unreported(record.job, at_party.state),
    )


def _reported(event: JobEvent) -> _AtParty:
    return _AtParty(NAMES[event.state], event.bytes_sent, event.bytes_received)


def _known(record: Record, party: str) -> _AtParty:
    """As the coordinator last knew: of a job that is over, how it ended at the party."""
    job, last = record.job, record.last.get(party)
    if party in record.released:
        release = Release.FromString(record.released[party].release)
        return _AtParty(job.stands[party], release.bytes_sent, release.bytes_received)
    if job.state is State.DENIED and job.problem is not None and job.problem.party == party:
        # A person is asked only where the policy leaves it to one, so any other refusal is the policy's.
        return _AtParty("denied" if job.stands[party] is Stand.AWAITING else "refused")
    return _AtParty(job.stands[party].value) if last is None else _AtParty(*last)


def _unreported(job: Job, state: str) -> str:
    """Why a party of a job that is over does not stand at an end."""
    if not job.over or state not in _OPEN:
        return ""
    return "not heard of after the end of the job; what runs there ends without its peers, or by its deadline"


def _waits_for(job: Job, party: str, stand: Stand) -> str:
    if job.over or party not in job.waits_for:
        return ""
    return {
        Stand.UNASKED: "its answer to the proposal",
        Stand.AWAITING: "a person's decision",
        Stand.APPROVED: "the start",
        Stand.RUNNING: "its part of the job",
        Stand.DONE: "what it releases",
    }.get(stand, "")


def _error(job: Job) -> JobError | None:
    if job.problem is None:
        return None
    code, message, party = job.problem.code, job.problem.message, job.problem.party
    return JobError(code=code, exit_code=ended(job).exit_code, message=message, party=party)


def when(seconds: float) -> str:
    """A time as documents write it."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
