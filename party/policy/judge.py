"""The policy of this party, applied to a job and to what was started here before. Reads, and decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from decimal import Decimal
from typing import Final

from jobs.kinds.data import check_data_kind, check_takes_blocks
from jobs.kinds.registry import opens
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied, ResourceError
from link.files.quantities import seconds, size
from mining.public_sizes import PublicSizes
from party.config import DatasetSection, PartyConfig
from party.data.expected_blocks import expected_block_bytes
from party.data.shared_sources import alike
from party.data.sources import Rows
from party.policy.job_memory import expected_memory
from party.policy.policy import Approval, check_fit, decide, recent_starts, verdicts
from party.policy.policy_input import Earlier, PolicyInput, Verdict
from party.policy.privacy_budget import DatasetBudget, left, totals
from party.policy.rules import PolicySection
from party.policy.several_jobs import check_new_rows, check_version
from party.services.anonymization.releases import NOTHING, Releases
from party.state.ledger import Ledger, charges
from party.state.store import Store

FAILED_S: Final = 24 * 3600  # for which a failure counts
KEPT_EXPECTED: Final = 256  # specifications of which the expected memory is known
MOST_SHOWN: Final = 100  # of earlier jobs, to a person who decides


class Judge:
    """Judges jobs by one party's policy.

    Args:
        config: The node's file.
        federation: All parties of its federation file.
        store: Its jobs.
        ledger: What jobs have cost the records of its datasets.
        releases: What has been made of their rows.
        before: Datasets that the node had under earlier settings.
        now: Unix seconds.

    Attributes:
        alike: By dataset, all whose past counts for it.
    """

    def __init__(
        self,
        config: PartyConfig,
        federation: Collection[str],
        store: Store,
        ledger: Ledger,
        releases: Releases,
        before: Iterable[DatasetSection] = (),
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._federation, self._store, self.now = config, federation, store, now
        self._ledger, self._releases, self.alike = ledger, releases, alike(config.dataset, before)
        self._memory: dict[tuple[bytes, PublicSizes, int | None], int] = {}  # of what it follows from: plans take time

    def policy_of(self, spec: JobSpec) -> PolicySection:
        """The rules for the dataset of a job."""
        return self._config.policy_of(spec.job.dataset)

    def approvals(self, dataset: str) -> int:
        """How many people have to approve a job on a dataset that people decide."""
        return self._config.policy_of(dataset).approvals

    def decide(
        self, spec: JobSpec, coordinator: str, *, job_id: bytes = b"", attempt: int = 1, expiry: int | None = None
    ) -> Approval:
        """How the policy has a job approved, were it proposed or started now.

        Args:
            spec: The job.
            coordinator: Who proposes it.
            job_id: Its id, where it has one: a job is not judged by itself.
            attempt: Of its starts that which is judged; earlier ones have cost what they have cost.
            expiry: When the proposal ends, where one has just come.

        Raises:
            ConfigurationError: The job does not fit this node or the kind of its dataset.
            PolicyDenied: A rule refuses it.
            ResourceError: It is expected to take more memory than all jobs at once may.
        """
        approval = decide(self.policy_of(spec), self._input(spec, coordinator, job_id, attempt, expiry))
        self._check_failures(spec, coordinator)
        self._check_memory(spec)
        return approval

    def memory_of(self, spec: JobSpec) -> int:
        """Bytes that a job counts for among those that run at once; 0 without a limit, or without its dataset here."""
        dataset = self._config.datasets.get(spec.job.dataset)
        if self._config.party.memory is None or dataset is None:
            return 0
        sizes = dataset.public_sizes
        block_bytes = expected_block_bytes(dataset, self._config.party.memory_share, spec)
        if (memory := self._memory.get((spec.digest, sizes, block_bytes))) is None:
            memory = expected_memory(spec, sizes, self._config.party.name, block_bytes)
            if len(self._memory) >= KEPT_EXPECTED:
                self._memory.clear()
            self._memory[spec.digest, sizes, block_bytes] = memory  # another thread may clear them at once
        return memory

    def _check_memory(self, spec: JobSpec) -> None:
        """Refuses what never fits beside the node itself."""
        me, most, memory = self._config.party.name, self._config.party.memory, self.memory_of(spec)
        if most is not None and memory > most:
            raise ResourceError(
                f"the job is expected to take {size(memory)} of memory at {me}, and [party] memory there leaves "
                f"{size(most)} to jobs; ask for less, such as fewer candidates, or have it raised",
                party=me,
            )

    def _check_failures(self, spec: JobSpec, coordinator: str) -> None:
        """Bounds what a coordinator can ask of rows by jobs that it chooses so that they fail on some."""
        me, most = self._config.party.name, self._config.policy.max_failed_jobs
        datasets, since = self._same_rows(spec.job.dataset), self.now() - FAILED_S
        if self._store.failed_here(datasets, coordinator, me, spec.job.parties, since) >= most:
            raise PolicyDenied(
                f"the policy of {me} lets {most} jobs of a coordinator on a dataset fail within 24 hours because rows "
                "do not fit what the job names, or are more than it allows (rule max_failed_jobs), since each reveals "
                f"something of them; have the log of {me} looked at, and try again in a day",
                party=me,
            )

    def verdicts(self, spec: JobSpec, coordinator: str, *, job_id: bytes = b"") -> tuple[Verdict, ...]:
        """What each rule of the policy says to a job now.

        Raises:
            ConfigurationError: The job does not fit this node.
        """
        facts = self._input(spec, coordinator, job_id, 1, None)
        check_fit(facts)
        return verdicts(self.policy_of(spec), facts)

    def looks_at_rows(self, spec: JobSpec) -> bool:
        """Whether rules on rows hold for a job, and later ones are compared with its rows.

        They do not where bounded noise protects what the rules are there for: a refusal would reveal something exact of
        the rows, which no ε covers.
        """
        return not self._input(spec, "", b"", 1, None).noise_protects

    async def check_data(
        self, spec: JobSpec, rows: Rows, others: Callable[[str], Awaitable[Rows]], job_id: bytes
    ) -> None:
        """The rules that need the rows of the dataset.

        Each dataset of the source is compared with its own last job, or with all of them: as another reads the rows,
        they may be other rows, or more of them.

        Args:
            spec: The job.
            rows: What its dataset has here.
            others: Reads what another dataset has.
            job_id: Its id, where it has one.

        Raises:
            PolicyDenied: A rule refuses the job.
        """
        own, policy, me = spec.job.dataset, self.policy_of(spec), self._config.party.name
        if policy.min_new_rows is None and policy.min_group is None:
            return
        if not await asyncio.to_thread(self.looks_at_rows, spec):
            return
        before = await asyncio.to_thread(self._store.last_counted, own, job_id)
        if before and before[0].data_digest == rows.digest:
            # What ran under another name since then was compared with these rows.
            return
        for name in self._same_rows(own):
            lasts = await asyncio.to_thread(self._store.last_counted, name, job_id)
            versions = [] if policy.min_group is None else await asyncio.to_thread(self._ledger.versions, name)
            if not lasts and not versions:
                continue
            # A dataset that the node has no longer had this one's source.
            there = rows if name == own or name not in self._config.datasets else await others(name)
            for last in lasts:
                check_new_rows(policy, me=me, n_rows=there.number, data_digest=there.digest, last=last)
            check_version(policy, me=me, n_rows=there.number, data_digest=there.digest, before=versions)

    def left(self, spec: JobSpec, job_id: bytes = b"") -> dict[str, Decimal]:
        """What is left of the totals of a job's dataset for this job and later ones; nothing where none is set."""
        facts = self._input(spec, "", job_id, 1, None)
        return {} if facts.budget is None else left(facts.budget, totals(facts.charged, facts.budget))

    def most_used(self) -> Decimal:
        """The largest share of such a limit that is used up, of all datasets; 0 where there is none."""
        return max((part for name in self._config.datasets for part in self.used(name).values()), default=Decimal(0))

    def used(self, dataset: str) -> dict[str, Decimal]:
        """Which share is used up of each limit that the jobs on a dataset have in common: totals, `max_jobs`."""
        budget, policy, now = self._config.totals_of(dataset), self._config.policy_of(dataset), self.now()
        found: dict[str, Decimal] = {}
        if budget is not None:
            rest = left(budget, totals(self._charged(budget, dataset, b"", 1, _since(budget, now)), budget))
            found = {name: 1 - each / getattr(budget, name) for name, each in rest.items()}
        if policy.max_jobs is not None:
            found["max_jobs"] = Decimal(len(recent_starts(policy, self._that_count(dataset), now))) / policy.max_jobs
        return found

    def releases(self, spec: JobSpec) -> int:
        """How many releases of the rows of a job's dataset were made before."""
        return self._releases.counted(spec.job.dataset).releases

    def earlier(self, spec: JobSpec, job_id: bytes = b"") -> list[Earlier]:
        """The last `MOST_SHOWN` other jobs that were started on a job's dataset, first the first."""
        return self._store.latest(spec.job.dataset, job_id, MOST_SHOWN)

    def _that_count(self, dataset: str, job_id: bytes = b"") -> list[Earlier]:
        """Of the other jobs that were started on a dataset's rows those that a rule can look at, first the first."""
        counted, datasets = self._config.policy_of(dataset).max_jobs, self._same_rows(dataset)
        firsts = [job for dataset in datasets for job in self._store.first(dataset, job_id)]
        first = sorted(firsts, key=_started)[:1]
        if counted is None:
            return first
        latest = [job for dataset in datasets for job in self._store.starts(dataset, job_id, counted)]
        latest = sorted(latest, key=_started)[-counted:]
        return first + [job for job in latest if job.job_id != first[0].job_id]

    def _input(self, spec: JobSpec, coordinator: str, job_id: bytes, attempt: int, expiry: int | None) -> PolicyInput:
        dataset, now = self._config.datasets.get(spec.job.dataset), self.now()
        budget = None if dataset is None else dataset.privacy
        if dataset is not None:
            check_data_kind(spec, dataset.kind, self._config.party.name)
            if dataset.engine not in ("auto", "memory"):
                check_takes_blocks(spec, self._config.party.name)
        return PolicyInput(
            spec=spec,
            coordinator=coordinator,
            me=self._config.party.name,
            federation=self._federation,
            datasets=self._config.datasets.keys(),
            now=now,
            expiry=expiry,
            earlier=self._that_count(spec.job.dataset, job_id),
            budget=budget,
            hides=dataset is not None and dataset.hiding is not None,
            published_rows=None if dataset is None else dataset.public_sizes.coarse().rows,
            made=self._releases.counted(spec.job.dataset, job_id) if opens(spec, "release") else NOTHING,
            results=()
            if self.policy_of(spec).min_group is None
            else self._ledger.results(self._same_rows(spec.job.dataset)),
            charged=()
            if budget is None
            else self._charged(budget, spec.job.dataset, job_id, attempt, _since(budget, now)),
        )

    def _same_rows(self, dataset: str) -> tuple[str, ...]:
        """All datasets of the source of one."""
        return self.alike.get(dataset, (dataset,))

    def _charged(
        self, budget: DatasetBudget, dataset: str, job_id: bytes, attempt: int, since: float | None
    ) -> tuple[Charge, ...]:
        """What counts of the ledger, without what is judged: a start, or under noise a job, all starts of it as one."""
        spent = sum((self._ledger.spent(name, since) for name in self._same_rows(dataset)), Counter[Charge]())
        spent -= Counter(
            entry.charge
            for entry in self._ledger.of_job(job_id)
            if (entry.attempt == attempt or entry.charge.epsilon is not None) and (since is None or entry.time > since)
        )
        return charges(spent, composed=budget.composition == "optimal")


def _since(budget: DatasetBudget, now: float) -> float | None:
    """After which start a job counts; all count where it is None."""
    return None if budget.period is None else now - seconds(budget.period)


def _started(job: Earlier) -> tuple[float, bytes]:
    return job.started, job.job_id
