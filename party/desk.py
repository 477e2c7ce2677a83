"""A person's place beside a node, whether or not it runs: what awaits them there, and by whose name they decide."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.federation import Federation
from link.errors import ComineError, PeerError, UsageError
from party.config import RESULTS, PartyConfig
from party.data.shared_sources import alike
from party.jobs.alignments import FOLDER, Alignments
from party.jobs.endings.holding import forget_shown
from party.jobs.job import ENDS
from party.jobs.planning.kept_plans import KeptPlans
from party.jobs.queue_note import FILE as QUEUE_NOTE
from party.jobs.queue_note import noted
from party.own_log import own_log
from party.peers import peers
from party.policy.consent import POLICY, Consent, spec_of
from party.policy.inbox import course, held_of, in_advance, line, listed, shown
from party.policy.judge import Judge
from party.policy.standing import Schedule
from party.services.anonymization.releases import FILE as RELEASES
from party.services.anonymization.releases import Releases
from party.state.database import is_locked
from party.state.journals import Journals
from party.state.ledger import Ledger
from party.state.node_database import FILE
from party.state.past import Filter
from party.state.recovery import companions
from party.state.store import Record, Store
from party.status import status
from protos.v1.control_pb2 import APPROVED, AWAITING_APPROVAL, RELEASING, RUNNING

MOST_WORDS: Final = 200  # characters of a name or a reason
ANSWER_S: Final = 60.0  # for which a running node may take to do what people ask of it
LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Desk:
    """What a node's file leads to, for one visit; from `at_desk`.

    Attributes:
        config: The file.
        store: The node's jobs.
        judge: Its policy.
        plans: What jobs would cost, for visits to come.
    """

    config: PartyConfig
    store: Store
    judge: Judge
    plans: KeptPlans

    def inbox(self, *, all_jobs: bool = False) -> dict[str, Any]:
        """The jobs that await a decision, or all, by the schema `comine.inbox/1`."""
        return self.listed(self.records(all_jobs=all_jobs), time.time()) | {"standing": self.standings()}

    def records(self, *, all_jobs: bool = False) -> list[Record]:
        """The same as they are recorded."""
        records, now = self.store.all() if all_jobs else self.store.within([AWAITING_APPROVAL]), time.time()
        return [record for record in records if all_jobs or record.expiry > now]

    def standings(self) -> list[dict[str, Any]]:
        """What was approved in advance, as in that schema."""
        return in_advance(self.store.standings(), time.time())

    def listed(self, records: Sequence[Record], now: float) -> dict[str, Any]:
        """Some jobs, by the same schema."""
        return listed(self.config.party.name, records, self.store, self.judge, now)

    def status(self) -> dict[str, Any]:
        """The jobs that have not ended, by the schema `comine.status/1`."""
        now = time.time()
        records = [
            record
            for record in self.store.within([RUNNING, RELEASING, APPROVED, AWAITING_APPROVAL])
            if record.state in (RUNNING, RELEASING) or record.expiry > now
        ]
        return self._status(records, now)

    def course(self, record: Record) -> dict[str, Any]:
        """How a job goes, as `comine.status/1` and `comine.proposal/1` tell it together, without what it would cost."""
        now = time.time()
        (going,) = self._status([record], now)["jobs"]
        return {**going, **course(record, self.store, now)}

    def past(self, which: Filter, start: int, number: int) -> list[dict[str, Any]]:
        """Some of the jobs that have ended, from the one at `start`, as the inbox lists them."""
        found = filter(None, map(self.store.get, self.store.past(which, start, number)))
        return list(self.listed([*found], which.now)["jobs"])

    def result(self, job_id: bytes) -> Path:
        """The folder of a job's result, where this party is a recipient of one."""
        return self.config.party.state_dir / RESULTS / job_id.hex()

    def shown(self, record: Record) -> dict[str, Any]:
        """All that a person needs to decide on a job, by the schema `comine.proposal/1`."""
        alignment = Alignments(self.config.party.state_dir / FOLDER).find(record.job_id)
        plan, name = self._plan(record), self.config.party.name
        return shown(name, record, self.store, self.judge, plan, alignment, time.time())

    def decide(self, record: Record, by: str, *, reason: str | None = None, schedule: Schedule | None = None) -> None:
        """Approves a job, with more runs of it where there is a schedule; denies it where there is a reason.

        Args:
            record: The job.
            by: Who decides, as `person` lets them be called.
            reason: Why not, which its coordinator is told.
            schedule: Of further runs that are approved in advance.

        Raises:
            ComineError: The job awaits no decision, or may not be approved; as `Consent` says.
            UsageError: The reason has no words, or too many.
        """
        if reason is not None:
            check_words("the reason", reason)
        with self.consent() as consent:
            if reason is None:
                consent.approve(record, by, schedule)
            else:
                consent.deny(record, by, reason)

    def peers(self) -> dict[str, Any]:
        """Whom the node knows, and until when certificates hold, by the schema `comine.peers/1`."""
        return peers(self.config, Federation.load(self.config.party.federation), self.store.latest_of_coordinators())

    @property
    def runs(self) -> bool:
        """Whether the node runs."""
        return is_locked(self.config.party.state_dir / FILE)

    def cancel(self, record: Record, by: str, reason: str) -> Record:
        """Ends a job that was approved or runs, for good.

        Args:
            record: The job.
            by: Who ends it, as `person` lets them be called.
            reason: Why, which all others are told.

        Returns:
            The job; once it has ended, where the node runs. It may have succeeded before.

        Raises:
            ComineError: The job cannot be ended any more; or its node does not do so in time.
            UsageError: The reason has no words, or too many.
        """
        check_words("the reason", reason)
        with self.consent() as consent:
            consent.cancel(record, by, reason)
        until, name = time.monotonic() + ANSWER_S, self.config.party.name
        while (present := self.store.get(record.job_id) or record).state not in ENDS and self.runs:
            if time.monotonic() > until:
                raise PeerError(f"{name} has not ended the job within {ANSWER_S:.0f} s; see its log", party=name)
            time.sleep(LOOK_S)
        self._forget_lost(record.job_id)
        return present

    def results(self) -> dict[str, Any]:
        """What jobs have found that is held until people release it, by the schema `comine.held/1`."""
        now = time.time()
        found = [
            line(record, now) | {"held": held}
            for record in filter(None, map(self.store.get, self.store.unreleased(now)))
            if (held := held_of(record, self.store, now))
        ]
        return {"schema": "comine.held/1", "party": self.config.party.name, "runs": self.runs, "results": found}

    def release(self, record: Record, by: str) -> None:
        """Releases what a job has found; the node, where it runs, goes on at once.

        Raises:
            ComineError: Nothing of the job is held.
        """
        with self.consent() as consent:
            consent.release(record, by)
        present = self.store.get(record.job_id)
        if present is not None and present.state != RUNNING:  # whose node would otherwise remove it
            forget_shown(self.config.party.state_dir, record.job_id)

    def withhold(self, record: Record, by: str, reason: str) -> None:
        """Does not release what a job has found, which ends the job for good; the reason stays at this party.

        Raises:
            ComineError: Nothing of the job is held.
            UsageError: The reason has no words, or too many.
        """
        check_words("the reason", reason)
        with self.consent() as consent:
            consent.withhold(record, by, reason)
        self._forget_lost(record.job_id)

    def _status(self, records: Sequence[Record], now: float) -> dict[str, Any]:
        queue = noted(self.config.party.state_dir / QUEUE_NOTE)
        return status(self.config.party.name, records, queue, now, runs=self.runs)

    def _forget_lost(self, job_id: bytes) -> None:
        """Forgets what is shown of a job, and what was kept for another attempt, where its people have ended it."""
        record = self.store.get(job_id)
        if record is not None and record.state not in (RUNNING, RELEASING):
            forget_shown(self.config.party.state_dir, job_id)
            Journals.beside(self.store, self.config.party.name).forget(job_id)

    @contextmanager
    def consent(self) -> Iterator[Consent]:
        """The party's own hand: its key and its audit log.

        Raises:
            ComineError: They cannot be used.
        """
        with own_log(self.config) as (audit, identity):
            yield Consent(self.judge, identity, self.store, audit)

    def _plan(self, record: Record) -> dict[str, Any] | None:
        """What the job would cost, as computed here; None where its data cannot be read now."""
        try:
            return self.plans.plan(self.config, spec_of(record)).as_data()
        except ComineError:
            return None


@contextmanager
def at_desk(party_toml: Path, plans: KeptPlans | None = None) -> Iterator[Desk]:
    """The node's file, its jobs and its policy.

    Args:
        party_toml: The node's file.
        plans: Of visits before.

    Raises:
        ComineError: The file is wrong, or the node's state cannot be read.
    """
    config = PartyConfig.load(party_toml)
    federation = Federation.load(config.party.federation)
    config.check_federation(federation)
    with contextlib.ExitStack() as stack:
        state, members = config.party.state_dir, tuple(federation.addresses)
        database = state / FILE
        store = stack.enter_context(contextlib.closing(Store.open_beside(database, database)))
        ledger = stack.enter_context(contextlib.closing(Ledger.open_beside(database, database)))
        companions.check(store, state, config.party.name)  # what follows makes a new one in the place of a lost one
        releases = Releases.open_beside(database, state / RELEASES, config.party.name, alike(config.dataset))
        stack.enter_context(contextlib.closing(releases))
        yield Desk(config, store, Judge(config, members, store, ledger, releases), plans or KeptPlans())


def person(by: str) -> str:
    """A person's name, as decisions carry it.

    Raises:
        UsageError: It is no name, or the policy's.
    """
    check_words("--by", by)
    if by == POLICY:
        raise UsageError(f"'{POLICY}' is how a node signs by itself; say who decides with --by NAME")
    return by


def check_words(what: str, text: str) -> None:
    """Refuses what is no text of one line.

    Raises:
        UsageError: It is empty, too long, or holds what cannot be printed.
    """
    if not (0 < len(text) <= MOST_WORDS and text.isprintable() and text.strip()):
        raise UsageError(f"{what} must have 1 to {MOST_WORDS} printable characters")
