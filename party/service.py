"""The control service: what a coordinator may ask of this node."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any, Final

import grpc

from crypto.params import STANDARD_128
from jobs.document import software_version
from jobs.spec import MAX_SPEC_BYTES, JobSpec
from link.core import CHUNK_BYTES
from link.errors import ConfigurationError, DeadlineExceeded, LimitExceeded, MalformedMessage, UnexpectedMessage
from link.version import WIRE_VERSION
from party.config import PartyConfig
from party.interceptors import coordinator_of
from party.logs import Log
from party.policy import decide
from party.session_host import SessionHost
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlServicer

NONCE_BYTES: Final = 16
MAX_EXPIRY_S: Final = 24 * 3600

Context = grpc.aio.ServicerContext[Any, Any]


class ControlService(ControlServicer):
    """Answers coordinators; `party.interceptors.ControlGate` stands before it and translates what it raises.

    Args:
        config: The node's file.
        federation: All parties of its federation file.
        host: The node's jobs.
        log: The node's log.
        now: Unix seconds.
    """

    def __init__(
        self,
        config: PartyConfig,
        federation: Collection[str],
        host: SessionHost,
        log: Log,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._federation, self._host, self._log, self._now = config, federation, host, log, now
        self._me = config.party.name

    async def Describe(self, request: control.DescribeRequest, context: Context) -> control.Description:  # noqa: ARG002, N802
        """What the node is and serves, as far as its policy opens it."""
        policy = self._config.policy
        opened = [d for d in self._config.dataset if policy.datasets is None or d.name in policy.datasets]
        return control.Description(
            name=self._me,
            software=software_version(),
            wire=WIRE_VERSION,
            suite=STANDARD_128.suite,
            datasets=[control.DatasetDescription(name=d.name, kind=d.kind) for d in opened],
            tasks=policy.tasks,
            peers=[name for name in self._federation if name != self._me],
            now=int(self._now()),
        )

    async def Propose(self, request: control.Proposal, context: Context) -> control.Decision:  # noqa: N802
        """Agrees to a job, or refuses with the rule that forbids it."""
        coordinator = coordinator_of(context, self._me)
        self._check_proposal(request)
        spec = JobSpec.from_canonical(request.spec)
        decide(
            self._config.policy, spec, me=self._me, federation=self._federation, datasets=self._config.datasets.keys()
        )
        job = self._host.propose(spec, request.nonce, request.expiry, coordinator)
        self._log.info(
            "proposal accepted", job=job.id.hex(), caller=coordinator, task=spec.job.task, dataset=spec.job.dataset
        )
        return control.Decision(job_id=job.id)

    async def Start(self, request: control.StartRequest, context: Context) -> control.Started:  # noqa: N802
        """Begins this party's part in a job that was agreed to."""
        self._host.start(self._host.find(request.job_id, coordinator_of(context, self._me)), request.attempt)
        return control.Started()

    async def Watch(self, request: control.WatchRequest, context: Context) -> AsyncIterator[control.JobEvent]:  # noqa: N802
        """The job as it stands, then what happens, up to its end."""
        async for event in self._host.find(request.job_id, coordinator_of(context, self._me)).watch():
            yield event

    async def Result(self, request: control.ResultRequest, context: Context) -> AsyncIterator[control.ResultPart]:  # noqa: N802
        """The signed release, then the result in pieces where this party may give it to the coordinator."""
        job = self._host.find(request.job_id, coordinator_of(context, self._me))
        if job.released is None or job.state != control.SUCCEEDED:
            raise UnexpectedMessage(f"the job has no result at {self._me}; watch it until it succeeds", party=self._me)
        yield control.ResultPart(header=job.released.header)
        table = job.released.table
        for begin in range(0, len(table), CHUNK_BYTES):
            yield control.ResultPart(table=table[begin : begin + CHUNK_BYTES])

    async def Cancel(self, request: control.CancelRequest, context: Context) -> control.Cancelled:  # noqa: N802
        """Ends a job here and tells its peers; does nothing where it has ended."""
        await self._host.cancel(self._host.find(request.job_id, coordinator_of(context, self._me)), request.reason)
        return control.Cancelled()

    def _check_proposal(self, proposal: control.Proposal) -> None:
        if len(proposal.nonce) != NONCE_BYTES:
            raise MalformedMessage(f"a proposal needs a nonce of {NONCE_BYTES} bytes", party=self._me)
        if len(proposal.spec) > MAX_SPEC_BYTES:
            raise LimitExceeded(f"a job specification has at most {MAX_SPEC_BYTES} bytes", party=self._me)
        left = proposal.expiry - self._now()
        if left <= 0:
            raise DeadlineExceeded(
                f"the proposal had expired when it reached {self._me}; check the clocks and propose the job anew",
                party=self._me,
            )
        if left > MAX_EXPIRY_S:
            raise ConfigurationError(
                f"{self._me} accepts proposals that expire within {MAX_EXPIRY_S // 3600} hours; check the clocks",
                party=self._me,
            )
