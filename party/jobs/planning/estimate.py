"""What this node reveals of a job before anybody agrees to it: its speed, and what its owner publishes of its sizes.

No row is read for it, and nothing in an answer depends on rows: sizes are in the node's file, are coarse, and are the
same whatever is asked about the dataset. Only for jobs that the policy would not refuse, only after the audit log has
it, and no more often than the policy says.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from jobs.audit.events import PlanAsked
from jobs.kinds.data import check_data_kind
from jobs.kinds.registry import kind_of
from jobs.plan import Plan
from jobs.plan.calibration import Speed, measure, speed_message
from jobs.plan.floor import Bounds, of_own
from jobs.plan.forecast import forecast
from jobs.plan.predicted import sizes_message
from jobs.proposed import job_from_canonical
from jobs.spec.job import MAX_SPEC_BYTES, JobSpec
from link.errors import LimitExceeded
from link.executor import Executor, ThreadExecutor
from link.pki.identity import Identity
from mining.public_sizes import NOTHING, PublicSizes, between, measured
from party.config import DatasetSection, PartyConfig
from party.data.block_folders import blocks_of
from party.data.engine import engine_of
from party.data.expected_blocks import expected_block_bytes
from party.data.places import source_of
from party.data.sources import BLOCKS, read_dataset
from party.policy.judge import Judge
from party.policy.privacy_budget import amounts
from party.state.node_audit import NodeAudit
from party.state.plan_count import PlanCount
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate, PrivacyLeft

KEEP_SPEED_S: Final = 10.0
LOCAL_LATENCY_S: Final = 0.005  # between parties, where nobody was asked: that of a good network


class Estimates:
    """Answers those who plan a job.

    Args:
        config: The node's file.
        judge: Its policy.
        count: How often it was asked.
        executor: Where its speed is measured.
        audit: Its audit log.
        identity: This party.
    """

    def __init__(
        self,
        config: PartyConfig,
        judge: Judge,
        count: PlanCount,
        executor: Executor,
        audit: NodeAudit,
        identity: Identity,
    ) -> None:
        self._config, self._judge, self._count, self._executor = config, judge, count, executor
        self._audit, self._identity = audit, identity
        self._busy = asyncio.Lock()
        self._speed: tuple[float, Speed] | None = None

    def renew(self, config: PartyConfig, judge: Judge, identity: Identity) -> None:
        """Goes on with other settings."""
        self._config, self._judge, self._identity = config, judge, identity

    async def answer(self, request: EstimateRequest, coordinator: str) -> PartyEstimate:
        """The speed of this machine, and the sizes that this party publishes of the job's dataset.

        Raises:
            ComineError: The policy refuses the job or another plan, or the job does not fit this node.
        """
        me = self._identity.name
        await asyncio.to_thread(self._count.take, coordinator, self._config.policy.max_plans, me, time.time())
        if len(request.spec) > MAX_SPEC_BYTES:
            raise LimitExceeded(f"a job specification has at most {MAX_SPEC_BYTES} bytes", party=me)
        spec = await asyncio.to_thread(job_from_canonical, request.spec)
        await self._audit.record(PlanAsked(coordinator=coordinator, spec_digest=spec.digest))
        approval = await asyncio.to_thread(self._judge.decide, spec, coordinator)
        dataset = self._config.datasets[spec.job.dataset]
        answer = PartyEstimate(
            party=me,
            sizes=sizes_message(dataset.public_sizes),
            speed=speed_message(await self._measured()),
            certificate_bytes=len(self._identity.certificate_pem),
            release=await asyncio.to_thread(self._judge.releases, spec) + 1,
            block_bytes=expected_block_bytes(dataset, self._config.party.memory_share, spec),
        )
        if approval == "auto" and (left := await asyncio.to_thread(self._judge.left, spec)):
            answer.left.CopyFrom(PrivacyLeft(**amounts(left).model_dump(exclude_none=True)))
        return answer

    async def _measured(self) -> Speed:
        async with self._busy:
            if self._speed is None or time.monotonic() - self._speed[0] > KEEP_SPEED_S:
                self._speed = (time.monotonic(), await measure(self._executor))
            return self._speed[1]


def local_plan(config: PartyConfig, spec: JobSpec, speed: Speed | None = None) -> Plan:
    """The plan that this party can make alone, for its own eyes: with the sizes of its own rows, and its own speed.

    Rows that do not lie in memory are not read for it.

    Args:
        config: The node's file.
        spec: The job, which the policy has been asked about.
        speed: Of this machine; None: it is measured.

    Raises:
        ComineError: The data cannot be read, or the job does not fit them.
    """
    return asyncio.run(_local_plan(config, spec, speed))


def own_speed() -> Speed:
    """The speed of this machine as jobs would use it."""
    executor = ThreadExecutor()
    try:
        return asyncio.run(measure(executor))
    finally:
        executor.close()


async def _local_plan(config: PartyConfig, spec: JobSpec, speed: Speed | None) -> Plan:
    me, executor, dataset = config.party.name, ThreadExecutor(), config.datasets[spec.job.dataset]
    check_data_kind(spec, dataset.kind, me)
    try:
        (known,) = await executor.map(lambda each: _known(config, each, spec), [dataset])
        found_speed = speed_message(await measure(executor) if speed is None else speed)
        certificate_bytes = config.tls.certificate.stat().st_size
    finally:
        executor.close()
    likewise = PartyEstimate(
        sizes=sizes_message(known.sizes),
        speed=found_speed,
        certificate_bytes=certificate_bytes,
        block_bytes=expected_block_bytes(dataset, config.party.memory_share, spec),
    )
    answers = dict.fromkeys(spec.job.parties, likewise)
    taken = f"The other parties are taken to be like {me}, in rows as in speed; nothing was asked of them."
    found = await asyncio.to_thread(forecast, spec, answers, LOCAL_LATENCY_S, taken, *known.grounds)
    return found.model_copy(
        update={"warning": of_own(spec, config.policy_of(dataset.name).min_count or 1, known.rows, me)}
    )


class _Known(NamedTuple):
    """What is known here of a dataset, and on what that rests where it is less than its rows tell."""

    sizes: PublicSizes
    grounds: tuple[str, ...] = ()
    is_exact: bool = True

    @property
    def rows(self) -> Bounds:
        """Between what its number of rows is."""
        if self.sizes.rows is None:
            return Bounds(0, None)
        return Bounds(self.sizes.rows, self.sizes.rows) if self.is_exact else Bounds(*between(self.sizes.rows))


def _known(config: PartyConfig, dataset: DatasetSection, spec: JobSpec) -> _Known:
    """The sizes of rows in memory; of others what was written or encoded before: to read them takes as long as a job.

    Raises:
        ComineError: The data cannot be read.
    """
    me, withheld = config.party.name, config.withheld[dataset.name]
    engine = dataset.engine
    if engine == "auto":
        engine = engine_of(dataset, config.party.memory_share) if kind_of(spec).takes_blocks(spec) else "memory"
    if engine == "memory":
        return _Known(measured(read_dataset(dataset, withheld)))
    where = "on a cluster" if engine == "spark" else "in blocks"
    if dataset.publish is not None:
        found = f"The rows of {me} lie {where} and were not read; their sizes are those of [dataset.publish]."
        return _Known(dataset.public_sizes.coarse(), (found,), is_exact=False)
    stored = None
    if engine == "processes":
        stored = blocks_of(source_of(dataset), withheld, config.party.state_dir / BLOCKS / dataset.name)
    if stored is not None:
        sizes = PublicSizes(sum(stored.lengths), stored.n_items)
        what = "and only their numbers of rows and items are known"
    else:
        sizes, what = NOTHING, "and nothing is known of them"
    found = (
        f"The rows of {me} lie {where} {what}: to count what is frequent takes as long as a job. Write their "
        "sizes into [dataset.publish], as comine party check prints it."
    )
    return _Known(sizes, (found,))
