"""One party's part in one job, from greeting to receipts: the same code in a node and in a simulation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from crypto.params import STANDARD_128
from jobs.data import Data
from jobs.kinds.kind import NO_RESOURCES, Resources
from jobs.kinds.registry import kind_of
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.core import MAX_BUFFERED_BYTES, Progress, Terms, Transport
from link.costs import Costs
from link.disclosure import Opened
from link.errors import ComineError, InternalError, JobCancelled, ResourceError, outward
from link.executor import Executor
from link.pki.identity import Identity
from link.randomness import RandomStream
from link.session import Session
from link.steps import begin
from link.transcripts.receipts import Account, Receipts
from link.transcripts.words import Evidence


@dataclass(frozen=True, slots=True)
class PartyRun:
    """What a party holds after a job.

    Attributes:
        session_id: Names the run for ever.
        outcome: The result, where this party learns it.
        costs: Bytes, rounds and seconds of this party.
        accounts: By peer, this party's signed receipt for it and the peer's for this party, which agree.
        opened: What this party opened.
    """

    session_id: bytes
    outcome: Outcome
    costs: Costs
    accounts: Mapping[str, Account]
    opened: tuple[Opened, ...]

    @property
    def receipts_from(self) -> tuple[str, ...]:
        """Peers whose signed transcript of the session equals this party's: all of them, where a job succeeded."""
        return tuple(self.accounts)


class Recorder(Protocol):
    """Hears of a session from `run_party`, which waits for each call; a node writes its audit log there."""

    @property
    def mac_secret(self) -> bytes | None:
        """Keys the MACs of what is opened; without one they can be checked by nobody."""

    async def began(self, session: bytes) -> None:
        """The session has this id; nothing but greetings has left this party."""

    async def ended(
        self,
        session: bytes,
        opened: Sequence[Opened],
        accounts: Mapping[str, Account],
        evidence: Sequence[Evidence],
        *,
        complete: bool,
    ) -> None:
        """The session is over: what this party has opened, and what it and its peers state of the frames.

        Args:
            session: The session's id.
            opened: What left, in order.
            accounts: By peer; those that came, and this party's own.
            evidence: Peers' signed words that may convict these peers.
            complete: Whether all accounts were exchanged and agree; nothing of the result has left yet. Otherwise the
                session ended early.
        """


class _Unrecorded:
    """Keeps nothing: for simulations."""

    mac_secret = None

    async def began(self, session: bytes) -> None:
        pass

    async def ended(
        self,
        session: bytes,
        opened: Sequence[Opened],
        accounts: Mapping[str, Account],
        evidence: Sequence[Evidence],
        *,
        complete: bool,
    ) -> None:
        pass


UNRECORDED: Final = _Unrecorded()
Hold = Callable[[Outcome, Sequence[Opened]], Coroutine[Any, Any, None]]
"""Waits until this party's people release what was found, and after what was opened; raises where they do not."""


async def run_party(
    spec: JobSpec,
    data: Data,
    transport: Transport,
    *,
    job_id: bytes,
    attempt: int,
    identity: Identity,
    random: RandomStream,
    executor: Executor,
    progress: Progress,
    resources: Resources = NO_RESOURCES,
    recorder: Recorder = UNRECORDED,
    hold: Hold | None = None,
) -> PartyRun:
    """Runs this party's part of a job; whatever ends it early is reported to all peers.

    Args:
        spec: The job.
        data: This party's data, of the kind that the job needs.
        transport: Carries the frames.
        job_id: The job's id.
        attempt: Counts the starts of the job.
        identity: This party.
        random: Its randomness for this run.
        executor: Where heavy work runs.
        progress: Called with how far steps have come.
        resources: What this party lends the job beside its data.
        recorder: Called once the session has an id, and at its end, also where the job fails.
        hold: Called with what was found before this party signs its receipts. No party hands over anything of a result
            without the receipts of all, so nothing leaves any of them but what was opened in the session.

    Raises:
        ComineError: The job failed here or at a peer; `party` names where.
        asyncio.CancelledError: The task was cancelled; the peers know.
    """
    (declared,) = await executor.map(lambda job: statement(job).declared, [spec])  # long where the job has long lists
    terms = Terms(job_id, attempt, spec.digest, spec.job.parties, STANDARD_128.suite)
    session = await Session.establish(
        terms,
        identity.name,
        transport,
        random=random,
        executor=executor,
        identity=identity,
        declared=declared,
        deadline_s=spec.job.deadline_s,
        progress=progress,
        mac_secret=recorder.mac_secret,
        ahead_bytes=_ahead_bytes(spec),
    )
    receipts = Receipts(session, identity)

    async def record_end(*, complete: bool) -> None:
        accounts, evidence = receipts.accounts(), session.core.evidence
        await recorder.ended(session.id, session.ledger.record, accounts, evidence, complete=complete)

    try:
        await recorder.began(session.id)
        if resources.journal is not None:
            await begin(session, resources.journal)
        outcome = await kind_of(spec).run(session.lane("task"), spec, data, resources)
        if hold is not None:
            await session.core.unless_ended(hold(outcome, session.ledger.record))
        await receipts.exchange()
        await record_end(complete=True)
    except (Exception, asyncio.CancelledError) as error:
        # Peers know the end by now or soon: a cancellation meanwhile does not make it another end.
        with contextlib.suppress(asyncio.CancelledError):
            await session.abort(_outward(error, identity.name))
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await record_end(complete=False)
        except ComineError as unwritten:
            error.add_note(f"The session's end could not be recorded: {unwritten.message}")
        raise
    return PartyRun(session.id, outcome, session.costs, receipts.accounts(), tuple(session.ledger.record))


def _ahead_bytes(spec: JobSpec) -> int:
    """How much of a peer's a party must be able to keep: a vector over all candidates, while it still reads others."""
    return MAX_BUFFERED_BYTES if spec.itemsets_ is None else max(MAX_BUFFERED_BYTES, 16 * spec.itemsets.max_candidates)


def _outward(error: BaseException, me: str) -> ComineError:
    """What peers learn of the end."""
    match error:
        case ComineError():
            return outward(error, me)
        case asyncio.CancelledError():
            return JobCancelled(f"the job was cancelled at {me}", party=me)
        case MemoryError():
            return outward(ResourceError("too little memory"), me)
        case _:
            return outward(InternalError("a fault of comine itself"), me)
