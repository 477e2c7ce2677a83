"""The life of a job at the coordinator, as a pure state machine.

Draft → Proposed → AwaitingApproval → Approved → Running → Releasing → Succeeded, or at some point Failed, Denied,
Cancelled or Expired. A job that failed or was cancelled can be Approved again, for another attempt. `step` takes a job,
what happened and the time to the next job and the effects that a driver performs; it reads no clock and calls nobody.
`MOVES` lists every legal move; what does not concern a job's state, such as a late report, changes nothing. Every state
that a job can leave by itself has a time, `Job.until`, by which it leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from link.errors import (
    CancelledByOwner,
    ComineError,
    DeadlineExceeded,
    InternalError,
    JobCancelled,
    PeerError,
    PolicyDenied,
    from_code,
)
from link.files.printable import enumeration

PROPOSE_S: Final = 120.0  # for all parties to answer a proposal
MARGIN_S: Final = 15.0  # beyond a job's deadline, for the parties' own words about it
LOOK_S: Final = 20.0  # for what the parties have to say, where a driver finds that a job's time has passed
RELEASE_S: Final = 900.0  # for fetching the result
AHEAD_S: Final = 5.0  # by which a party's clock may be ahead without a word


class State(StrEnum):
    """Where a job stands."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    AWAITING = "awaiting-approval"
    APPROVED = "approved"
    RUNNING = "running"
    RELEASING = "releasing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Stand(StrEnum):
    """How far one party is with a job, as the coordinator knows."""

    UNASKED = "unasked"
    AWAITING = "awaiting-approval"
    APPROVED = "approved"
    RUNNING = "running"
    DONE = "done"
    RELEASED = "released"


_ENDS: Final = frozenset({State.SUCCEEDED, State.FAILED, State.DENIED, State.CANCELLED, State.EXPIRED})
_EARLY: Final = frozenset({State.FAILED, State.DENIED, State.CANCELLED, State.EXPIRED})
_LATE: Final = frozenset({State.FAILED, State.CANCELLED})
_PAST: Final = frozenset({State.SUCCEEDED, State.EXPIRED})  # what a job has done, not what was done to it

MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.DRAFT: frozenset({State.PROPOSED, State.FAILED, State.CANCELLED, State.EXPIRED}),
    State.PROPOSED: frozenset({State.AWAITING, State.APPROVED}) | _EARLY,
    State.AWAITING: frozenset({State.APPROVED}) | _EARLY,
    State.APPROVED: frozenset({State.RUNNING}) | _EARLY,
    State.RUNNING: frozenset({State.RELEASING}) | _LATE,
    State.RELEASING: frozenset({State.SUCCEEDED}) | _LATE,
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset({State.APPROVED}),  # for another attempt
    State.DENIED: frozenset(),
    State.CANCELLED: frozenset({State.APPROVED}),
    State.EXPIRED: frozenset(),
}


class Problem(NamedTuple):
    """Why a job ended early.

    Attributes:
        code: The error's code.
        message: One sentence for people.
        party: Where it arose; None at the coordinator.
    """

    code: str
    message: str
    party: str | None = None


class Job(NamedTuple):
    """A job as the coordinator knows it.

    Attributes:
        parties: In the order of the job.
        expires: Unix seconds, after which no party begins it.
        deadline_s: For which it may run.
        until: Unix seconds, by which it leaves its state; no meaning once it is over.
        state: Where it stands.
        stands: How far each party is.
        away: Parties that could not be reached when they were last called.
        problem: Why it ended early.
        attempt: Counts its starts, from 1; the parties begin none twice.
        impostors: By party that is away, what is wrong with who answers in its place.
        began: Unix seconds, when all parties had begun, since somebody has last wanted an attempt; 0 before.
        retried: How many attempts it has begun by itself since then.
        lost: Why the attempt ended after which it did so last.
    """

    parties: tuple[str, ...]
    expires: float
    deadline_s: float
    until: float
    state: State
    stands: Mapping[str, Stand]
    away: frozenset[str] = frozenset()
    problem: Problem | None = None
    attempt: int = 1
    impostors: Mapping[str, str] = MappingProxyType({})
    began: float = 0.0
    retried: int = 0
    lost: str = ""

    @classmethod
    def draft(cls, parties: tuple[str, ...], *, expires: float, deadline_s: float) -> Job:
        """A job that nobody has been asked for."""
        return cls(parties, expires, deadline_s, expires, State.DRAFT, dict.fromkeys(parties, Stand.UNASKED))

    @property
    def over(self) -> bool:
        """Whether the job has ended, one way or another; another attempt may follow."""
        return self.state in _ENDS

    def hindrance(self, now: float) -> str:
        """Why the job cannot have another attempt, as the end of a sentence; empty where it can."""
        if self.state not in (State.FAILED, State.CANCELLED):
            return f"it {'has' if self.state in _PAST else 'is'} {self.state}"
        missing = tuple(p for p in self.parties if self.stands[p] in (Stand.UNASKED, Stand.AWAITING))
        done = tuple(p for p in self.parties if self.stands[p] in (Stand.DONE, Stand.RELEASED))
        if missing:
            return f"{enumeration(missing)} had not approved it"
        if done:
            return f"{enumeration(done)} had done all of it"
        if now >= self.expires:
            return "its proposal has expired"
        return ""

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The parties whose next word the job waits for."""
        waited = _WAITED.get(self.state)
        late = tuple(p for p in self.parties if self.stands[p] is waited)
        missing = tuple(p for p in late if p in self.away)
        return missing if missing and self.state is State.APPROVED else late


_WAITED: Final = {
    State.PROPOSED: Stand.UNASKED,
    State.AWAITING: Stand.AWAITING,
    State.APPROVED: Stand.APPROVED,
    State.RUNNING: Stand.RUNNING,
    State.RELEASING: Stand.DONE,
}


# -- what happens ------------------------------------------------------------------------------------------------------
class Signal(Enum):
    """Events that say nothing but that they happened."""

    TAKEN_UP = "a driver has begun to drive the job, for the first time or again"
    STARTED = "all parties have begun"
    RELEASED = "what all parties released agrees, and is kept"
    CLOCK = "time has passed"
    WOKEN = "time has passed in which the driver stood still, and heard nothing of what the parties said"
    RESUMED = "somebody at the coordinator wants the job to go on in another attempt"
    RETRIED = "the job goes on in another attempt by itself, within the deadline of the one before"


class Decided(NamedTuple):
    """A party has answered the proposal: it approves, or a person there has yet to decide."""

    party: str
    approved: bool


class Away(NamedTuple):
    """A party cannot be reached, or is back; `why` is for people, where another answers in its place."""

    party: str
    away: bool
    why: str = ""


class Reported(NamedTuple):
    """A party has done its part, or what it released has come."""

    party: str
    stand: Stand


class Ended(NamedTuple):
    """Something ended the job early: a party's word, or a fault on the way."""

    problem: Problem


class CancelAsked(NamedTuple):
    """Somebody at the coordinator wants the job to end."""

    reason: str = ""


Event = Signal | Decided | Away | Reported | Ended | CancelAsked


# -- what is to be done ------------------------------------------------------------------------------------------------
class Act(Enum):
    """Effects that need no more words."""

    FOLLOW = "watch all parties until each has done its part"
    FETCH = "get and keep what each party released"
    SAVE = "keep the job as it stands"


class Propose(NamedTuple):
    """Ask these parties. `again`: they may have been asked before, so look first."""

    parties: tuple[str, ...]
    again: bool


class Attend(NamedTuple):
    """Watch these parties until their people have decided."""

    parties: tuple[str, ...]


class Start(NamedTuple):
    """Begin the job at all parties. `again`: time has passed since they agreed, so look first."""

    again: bool


class CancelAll(NamedTuple):
    """Tell all parties that the job is over, and why."""

    reason: str


Effect = Act | Propose | Attend | Start | CancelAll


def step(job: Job, event: Event, now: float) -> tuple[Job, tuple[Effect, ...]]:
    """What becomes of a job by an event, and what is to be done about it, in that order.

    Args:
        job: The job.
        event: What happened.
        now: Unix seconds.
    """
    if job.over:
        goes_on = event in (Signal.RESUMED, Signal.RETRIED) and not job.hindrance(now)
        return _resumed(job, now, by_itself=event is Signal.RETRIED) if goes_on else (job, ())
    match event:
        case Signal.TAKEN_UP:
            return _taken_up(job, now)
        case Decided(party, approved):
            return _decided(job, party, approved)
        case Away(party, away, why):
            impostors = {p: reason for p, reason in {**job.impostors, party: why}.items() if reason}
            return job._replace(away=job.away | {party} if away else job.away - {party}, impostors=impostors), ()
        case Signal.STARTED if job.state is State.APPROVED:
            job = job._replace(began=_began(job, now))
            until = job.began + job.deadline_s + MARGIN_S
            begun = dict.fromkeys(job.parties, Stand.RUNNING)
            return _moved(job, State.RUNNING, until=until, stands=begun), (Act.SAVE, Act.FOLLOW)
        case Reported(party, stand):
            return _reported(job, party, stand, now)
        case Signal.RELEASED if job.state is State.RELEASING:
            return _moved(job, State.SUCCEEDED, stands=dict.fromkeys(job.parties, Stand.RELEASED)), (Act.SAVE,)
        case Ended(problem) if _end_of(job, problem) is State.EXPIRED and job.state is not State.PROPOSED:
            return _early(job, problem, now)
        case Ended(problem):
            return _ended(job, _end_of(job, problem), problem)
        case CancelAsked(reason):
            why = f": {reason}" if reason else ""
            problem = Problem(JobCancelled.code, f"the job was cancelled at the coordinator{why}")
            return _ended(job, State.CANCELLED, problem)
        case Signal.WOKEN if now >= job.until and job.state in (State.RUNNING, State.RELEASING):
            return job._replace(until=now + LOOK_S), ()
        case Signal.CLOCK | Signal.WOKEN if now >= job.until:
            return _late(job, now)
        case _:
            return job, ()


def _taken_up(job: Job, now: float) -> tuple[Job, tuple[Effect, ...]]:
    if job.state in (State.RUNNING, State.RELEASING):
        most = job.deadline_s + MARGIN_S if job.state is State.RUNNING else RELEASE_S
        until = min(job.until, now + most)  # which is far away where the clock was set back in between
        job = job._replace(until=max(until, now + LOOK_S), away=frozenset())
        return job, (Act.FOLLOW if job.state is State.RUNNING else Act.FETCH,)
    if now >= job.expires:
        return _late(job, now)
    match job.state:
        case State.DRAFT:
            proposed = _moved(job, State.PROPOSED, until=min(job.expires, now + PROPOSE_S))
            return proposed, (Act.SAVE, Propose(job.parties, again=False))
        case State.PROPOSED:
            asked = job._replace(until=min(job.expires, now + PROPOSE_S))
            return asked, (Propose(job.waits_for, again=True),)
        case State.AWAITING:
            return job._replace(away=frozenset()), (Attend(job.waits_for),)
        case _:
            return job._replace(away=frozenset()), (Start(again=True),)


def _resumed(job: Job, now: float, *, by_itself: bool) -> tuple[Job, tuple[Effect, ...]]:
    """Another attempt: the parties approved the job, and begin it as soon as a driver takes it up."""
    lost = "" if job.problem is None else job.problem.message
    until = min(job.expires, _began(job, now) + job.deadline_s) if by_itself else job.expires
    again = _moved(job, State.APPROVED, until=until, stands=dict.fromkeys(job.parties, Stand.APPROVED))
    again = again._replace(attempt=job.attempt + 1)
    if by_itself:
        return again._replace(retried=job.retried + 1, lost=lost), (Act.SAVE,)
    return again._replace(began=0.0, retried=0, lost=""), (Act.SAVE,)


def _began(job: Job, now: float) -> float:
    return min(job.began or now, now)  # later than now is what a clock wrote that was set back since


def _decided(job: Job, party: str, approved: bool) -> tuple[Job, tuple[Effect, ...]]:
    if job.state not in (State.PROPOSED, State.AWAITING) or job.stands.get(party) not in (
        Stand.UNASKED,
        Stand.AWAITING,
    ):
        return job, ()
    stand = Stand.APPROVED if approved else Stand.AWAITING
    job = job._replace(stands={**job.stands, party: stand}, away=job.away - {party})
    open_ = {Stand.UNASKED, Stand.AWAITING} & set(job.stands.values())
    if not open_:
        again = job.state is State.AWAITING
        return _moved(job, State.APPROVED, until=job.expires), (Act.SAVE, Start(again))
    if job.state is State.PROPOSED and Stand.UNASKED not in open_:
        awaiting = _moved(job, State.AWAITING, until=job.expires)
        return awaiting, (Act.SAVE, Attend(awaiting.waits_for))
    return job, (Act.SAVE,) if job.state is State.AWAITING else ()  # what policies say can be asked again


def _reported(job: Job, party: str, stand: Stand, now: float) -> tuple[Job, tuple[Effect, ...]]:
    expected = {State.RUNNING: Stand.DONE, State.RELEASING: Stand.RELEASED}.get(job.state)
    if party not in job.stands or stand is not expected:
        return job, ()
    job = job._replace(stands={**job.stands, party: stand}, away=job.away - {party})
    if job.state is State.RUNNING and set(job.stands.values()) == {Stand.DONE}:
        return _moved(job, State.RELEASING, until=now + RELEASE_S), (Act.SAVE, Act.FETCH)
    return job, ()


def _end_of(job: Job, problem: Problem) -> State:
    """The state in which a job ends by a problem."""
    wanted = {
        PolicyDenied.code: State.DENIED,
        JobCancelled.code: State.CANCELLED,
        CancelledByOwner.code: State.CANCELLED,
        DeadlineExceeded.code: State.EXPIRED,
    }.get(problem.code, State.FAILED)
    return wanted if wanted in MOVES[job.state] else State.FAILED


def _early(job: Job, problem: Problem, now: float) -> tuple[Job, tuple[Effect, ...]]:
    """The job's time is over by a party's clock: where that is a moment ahead, all that had not decided are named."""
    ahead_s = job.expires - now
    if problem.party is None or ahead_s <= AHEAD_S or job.state not in (State.AWAITING, State.APPROVED):
        return _late(job, now)
    what = (
        f"the job expired at {problem.party} before its time: the clock there is {ahead_s:.0f} s ahead of the "
        "coordinator's, or more; set both by a time server and submit it again"
    )
    return _ended(job, State.EXPIRED, Problem(DeadlineExceeded.code, what))


def _late(job: Job, now: float) -> tuple[Job, tuple[Effect, ...]]:
    names = enumeration(job.waits_for or job.parties)
    if job.state is State.APPROVED and job.retried and job.until <= now < job.expires:
        what = (
            f"the job could not go on by itself at {names} within its deadline of {job.deadline_s:g} s; check their "
            "nodes, then resume the job"
        )
        return _ended(job, State.FAILED, Problem(PeerError.code, what))
    match job.state:
        case State.AWAITING:
            what = f"the job expired before {names} had decided; submit it again and ask them to look at their inbox"
        case State.APPROVED:
            what = f"the job expired before it could be started at {names}; check their nodes and submit it again"
        case State.RUNNING:
            what = f"the job did not end within its deadline of {job.deadline_s:g} s; it waited for {names}"
            if away := tuple(p for p in job.waits_for if p in job.away):
                what += f"; {enumeration(away)} could not be reached"
        case State.RELEASING:
            what = f"{names} did not hand over what was released within {RELEASE_S:g} s; look at their nodes' logs"
        case State.PROPOSED if now < job.expires:
            what = f"{names} did not answer the proposal within {PROPOSE_S:g} s; look at their nodes' logs"
        case _:
            what = f"the job expired before {names} had answered; submit it again"
    problem = Problem(DeadlineExceeded.code, what)
    if job.state is State.PROPOSED and now < job.expires:
        return _ended(job, State.FAILED, problem)
    return _ended(job, _end_of(job, problem), problem)


def _ended(job: Job, state: State, problem: Problem) -> tuple[Job, tuple[Effect, ...]]:
    """The early end: the parties are told before it is kept, so that a driver that dies in between tells them again."""
    cancel: tuple[Effect, ...] = () if job.state is State.DRAFT else (CancelAll(problem.message),)
    return _moved(job, state, problem=problem), (*cancel, Act.SAVE)


def _moved(
    job: Job,
    state: State,
    *,
    until: float | None = None,
    stands: Mapping[str, Stand] | None = None,
    problem: Problem | None = None,
) -> Job:
    if state not in MOVES[job.state]:
        raise RuntimeError(f"a job cannot go from {job.state} to {state}")
    return job._replace(
        state=state,
        until=job.until if until is None else until,
        stands=job.stands if stands is None else stands,
        problem=problem,
        away=frozenset(),
    )


def ended(job: Job) -> ComineError:
    """The error by which a job ended early."""
    if job.problem is None:
        return InternalError(f"the job is {job.state} without a reason")
    return from_code(job.problem.code, job.problem.message, party=job.problem.party)
