"""What this node tells of a job before anybody agrees to it: how fast it is, and the sizes that its datasets publish.

Only for jobs that the policy would not refuse, only after the audit log has it, and with bounded work: one dataset is
mined at a time, with a limit, and what came of it is kept for the next who asks the same. One answer also serves the
variants of the job that a plan shows beside it, as far as the policy treats them like the job.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Final, TypeVar

from jobs.audit.events import PlanAsked
from jobs.data import Data, kind_of
from jobs.distributed_parameters import is_noisy
from jobs.kinds import check_kind
from jobs.parameters import horizontal_mining, itemisation
from jobs.plan import Plan
from jobs.plan.alternatives import variants
from jobs.plan.calibration import UNKNOWN_ROWS, Speed, measure
from jobs.plan.estimate import estimate
from jobs.plan.plan import RowsPublic
from jobs.plan.publication import published_columns, published_rows, published_sizes, told_speed
from jobs.spec import MAX_SPEC_BYTES, JobSpec
from link.errors import ComineError, LimitExceeded
from link.executor import Executor, ThreadExecutor
from link.identity import Identity
from mining.item_columns import item_columns
from mining.joint.local_sizes import LocalSizes as LocallyExpected
from mining.joint.local_sizes import local_sizes
from mining.joint.parameters import HorizontalMining
from mining.joint.vertical.local_columns import local_columns
from mining.tables import Table
from mining.thresholds import below_floor, minimum_count
from mining.transactions import Transactions
from party.config import PartyConfig
from party.judge import Judge
from party.node_audit import NodeAudit
from party.policy import Approval
from party.privacy_budget import told
from party.rules import PolicySection
from party.sources import Sources
from protos.v1.plan_pb2 import EstimateRequest, LocalSizes, PartyEstimate, PrivacyLeft

T = TypeVar("T")

KEEP_SPEED_S: Final = 10.0
LOCAL_LATENCY_S: Final = 0.005  # between parties, where nobody was asked: that of a good network
_Key = tuple[bytes, tuple[bytes, ...], bytes, int, RowsPublic]


class Estimates:
    """Answers those who plan a job.

    Args:
        config: The node's file.
        judge: Its policy.
        sources: Its data.
        executor: Where heavy work runs.
        audit: Its audit log.
        identity: This party.
    """

    def __init__(
        self,
        config: PartyConfig,
        judge: Judge,
        sources: Sources,
        executor: Executor,
        audit: NodeAudit,
        identity: Identity,
    ) -> None:
        self._config, self._judge, self._sources, self._executor = config, judge, sources, executor
        self._audit, self._identity = audit, identity
        self._busy = asyncio.Lock()
        self._speed: tuple[int, float, Speed] | None = None
        self._sizes: dict[str, tuple[_Key, LocalSizes]] = {}  # as they are told

    async def answer(self, request: EstimateRequest, coordinator: str) -> PartyEstimate:
        """The speed of this machine, or with the rows of all parties given, the sizes that this party publishes.

        Raises:
            ComineError: The policy refuses the job, it does not fit this node, or its data cannot be read.
        """
        me = self._identity.name
        if len(request.spec) > MAX_SPEC_BYTES:
            raise LimitExceeded(f"a job specification has at most {MAX_SPEC_BYTES} bytes", party=me)
        spec = JobSpec.from_canonical(request.spec)
        await self._audit.record(PlanAsked(coordinator=coordinator, spec_digest=spec.digest))
        approval = self._judge.decide(spec, coordinator)
        policy = self._judge.policy_of(spec)
        rows_public = self._rows_public(spec, approval)
        data = await self._sources.load(spec.job.dataset)
        check_kind(spec, kind_of(data), me)
        await self._check_data(spec, data)
        answer = PartyEstimate(
            party=me,
            rows_public=rows_public,
            n_rows=published_rows(data.n_rows, rows_public),
            certificate_bytes=len(self._identity.certificate_pem),
        )
        if approval == "auto" and (left := self._judge.left(spec)):
            answer.left.CopyFrom(PrivacyLeft(**told(left).model_dump(exclude_none=True)))
        if not request.HasField("n_rows"):
            answer.speed.CopyFrom(told_speed(await self._measured(answer)))
        elif rows_public != "hidden" and _has_sizes(spec):
            # Of a table the common rows count, which are at most its own, whatever a coordinator claims.
            claimed = data.n_rows if spec.is_vertical else request.n_rows
            n_rows = _checked_rows(policy, spec, claimed, data.n_rows, me)
            told_too = self._told_too(spec, coordinator, approval) if _varies(spec) else []
            answer.sizes.CopyFrom(await self._sized(spec, told_too, data, n_rows, rows_public))
        return answer

    def _rows_public(self, spec: JobSpec, approval: Approval) -> RowsPublic:
        """How exactly sizes are told for the plan of a job."""
        dataset = self._config.datasets[spec.job.dataset]
        # Under distributed noise no number of a job is exact, and where nothing without noise may be asked, a plan is
        # no way around that.
        if is_noisy(spec) and dataset.privacy is not None and dataset.privacy.exact == "refuse":
            return "hidden"
        # To plan a job must not disclose what a person has yet to agree to, nor what it would not tell once it ran.
        unsaid: RowsPublic = "rounded" if approval == "auto" and not is_noisy(spec) else "hidden"
        return dataset.rows_public or unsaid

    def _told_too(self, spec: JobSpec, coordinator: str, approval: Approval) -> list[JobSpec]:
        """The job's variants that the policy treats alike: of these this party would tell as much if it were asked."""
        alike = []
        for variant in variants(spec):
            with suppress(ComineError):  # refused
                if self._judge.decide(variant.spec, coordinator) == approval:
                    alike.append(variant.spec)
        return alike

    async def _check_data(self, spec: JobSpec, data: Data) -> None:
        data_digest = await self._sources.digest(spec.job.dataset, data)
        self._judge.check_data(spec, data.n_rows, data_digest)

    async def _measured(self, answer: PartyEstimate) -> Speed:
        n_rows = answer.n_rows if answer.HasField("n_rows") else UNKNOWN_ROWS
        async with self._busy:
            if self._speed is None or self._speed[0] != n_rows or time.monotonic() - self._speed[1] > KEEP_SPEED_S:
                self._speed = (n_rows, time.monotonic(), await measure(self._executor, n_rows))
            return self._speed[2]

    async def _sized(
        self, spec: JobSpec, told_too: Sequence[JobSpec], data: Data, n_rows: int, rows_public: RowsPublic
    ) -> LocalSizes:
        dataset = spec.job.dataset
        async with self._busy:
            others = tuple(other.digest for other in told_too)
            key = (spec.digest, others, await self._sources.digest(dataset, data), n_rows, rows_public)
            kept = self._sizes.get(dataset)
            if kept is None or kept[0] != key:
                found = await _aside(self._executor, lambda: _published(spec, told_too, data, n_rows, rows_public))
                kept = self._sizes[dataset] = (key, found)
            return kept[1]


def _published(
    spec: JobSpec, told_too: Sequence[JobSpec], data: Data, n_rows: int, rows_public: RowsPublic
) -> LocalSizes:
    """What is told of the sizes."""
    if isinstance(data, Table):
        columns, asked = item_columns(data, itemisation(spec)), spec.itemsets
        found = local_columns(columns, asked.min_support, asked.max_length)
        return published_columns(found, data.column_names, rows_public)
    return published_sizes(sizes_of(spec, data, n_rows, told_too), rows_public)


def sizes_of(spec: JobSpec, data: Transactions, n_rows: int, told_too: Sequence[JobSpec] = ()) -> LocallyExpected:
    """What the rows let expect of a job.

    Args:
        spec: The job.
        data: The party's rows.
        n_rows: Rows of all parties.
        told_too: Variants of the job, of which the sizes are to tell too.
    """
    if spec.itemsets.exclude:
        data = data.without(spec.itemsets.exclude)
    others = [horizontal_mining(other) for other in told_too]
    return local_sizes(data, _mined_as(spec), len(spec.job.parties), n_rows, others)


def _mined_as(spec: JobSpec) -> HorizontalMining:
    """How the rows are mined for a plan: a job under noise as if it had none."""
    if not is_noisy(spec):
        return horizontal_mining(spec)
    from jobs.plan.distributed import exact_counterpart

    task = exact_counterpart(spec)
    assert task is not None  # as `_has_sizes` says
    return task


def _has_sizes(spec: JobSpec) -> bool:
    """Whether what a job costs hangs on more of the rows than their number, and they tell it beforehand."""
    return spec.mines and not spec.privacy.perturbs and spec.itemsets.min_support_ is not None


def _varies(spec: JobSpec) -> bool:
    """Whether a plan shows variants of the job beside it."""
    return spec.mines and not spec.is_vertical and spec.privacy.model == "exact"


def local_plan(config: PartyConfig, spec: JobSpec) -> Plan:
    """The plan that this party can make alone, for its own eyes: with its own rows, exactly, and its own speed.

    Args:
        config: The node's file.
        spec: The job, which the policy has been asked about.

    Raises:
        ComineError: The data cannot be read, or the job does not fit them.
    """
    return asyncio.run(_local_plan(config, spec))


async def _local_plan(config: PartyConfig, spec: JobSpec) -> Plan:
    me, executor = config.party.name, ThreadExecutor()
    try:
        data = await Sources(config.dataset, executor).load(spec.job.dataset)
        check_kind(spec, kind_of(data), me)
        n_rows = data.n_rows * len(spec.job.parties)
        told_too = [variant.spec for variant in variants(spec)] if _varies(spec) else []
        found = None
        if _has_sizes(spec):
            found = await _aside(executor, lambda: _published(spec, told_too, data, n_rows, "exact"))
        speed = told_speed(await measure(executor, data.n_rows))
        certificate_bytes = config.tls.certificate.stat().st_size
    finally:
        executor.close()
    answers = {
        name: PartyEstimate(
            party=name,
            rows_public="exact" if name == me else "hidden",
            n_rows=data.n_rows,
            speed=speed,
            sizes=found,
            certificate_bytes=certificate_bytes,
        )
        for name in spec.job.parties
    }
    alike = f"The other parties are taken to be like {me}, in rows as in speed; nothing was asked of them."
    return estimate(spec, answers, LOCAL_LATENCY_S, alike)


def _checked_rows(policy: PolicySection, spec: JobSpec, claimed: int, own: int, me: str) -> int:
    """The rows of all parties to reckon with: a coordinator that lies about them learns no more than by a job.

    Too many rows make a count a low share, and too few make a share a low count.

    Raises:
        PolicyDenied: The fraction comes to fewer rows than the policy allows, as it would in the job.
    """
    asked, n_rows = spec.itemsets.min_support, max(claimed, own)
    if not isinstance(asked, Decimal):
        share = policy.min_support
        return n_rows if share is None else max(own, min(n_rows, floor(Fraction(asked) / Fraction(share))))
    if policy.min_count is not None and minimum_count(asked, n_rows) < policy.min_count:
        raise below_floor(me, policy.min_count, "all parties' transactions")
    return n_rows


async def _aside(executor: Executor, work: Callable[[], T]) -> T:
    (result,) = await executor.map(lambda _: work(), [None])
    return result
