"""The control service: what a coordinator may ask of this node."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import aclosing
from typing import Any

import grpc

from crypto.params import STANDARD_128
from jobs.consent import check_approvals
from jobs.description import sign
from link.encoding.chunks import CHUNK_BYTES
from link.errors import UnexpectedMessage
from link.pki.identity import Identity, check_own_span
from link.version import WINDOW, software_version
from party.config import PartyConfig
from party.jobs.planning.estimate import Estimates
from party.jobs.session_host import SessionHost
from party.node.interceptors import coordinator_of
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2_grpc import ControlServicer
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate

Context = grpc.aio.ServicerContext[Any, Any]


class ControlService(ControlServicer):
    """Answers coordinators; `party.node.interceptors.Gate` stands before it and translates what it raises.

    Args:
        config: The node's file.
        federation: All parties of its federation file.
        host: The node's jobs.
        identity: This party.
        estimates: Its answers to who plans a job.
        now: Unix seconds.
    """

    def __init__(
        self,
        config: PartyConfig,
        federation: Collection[str],
        host: SessionHost,
        identity: Identity,
        estimates: Estimates,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config, self._federation, self._host, self.now = config, federation, host, now
        self._me, self._identity, self._estimates = config.party.name, identity, estimates

    def renew(self, config: PartyConfig, federation: Collection[str], identity: Identity) -> None:
        """Goes on with other settings."""
        self._config, self._federation, self._identity = config, federation, identity

    async def Describe(self, request: control.DescribeRequest, context: Context) -> control.SignedDescription:  # noqa: ARG002, N802
        """What the node is and serves, as far as its policy opens it."""
        policy = self._config.policy
        opened = [d for d in self._config.dataset if policy.datasets is None or d.name in policy.datasets]
        description = control.Description(
            name=self._me,
            software=software_version(),
            wire=str(WINDOW.latest),
            oldest_wire=str(WINDOW.oldest),
            suite=STANDARD_128.suite,
            datasets=[control.DatasetDescription(name=d.name, kind=d.kind) for d in opened],
            tasks=policy.tasks,
            peers=[name for name in self._federation if name != self._me],
            now=int(self.now()),
            revocations=self._identity.trust.number,
        )
        return sign(description, request.challenge, self._identity)

    async def Estimate(self, request: EstimateRequest, context: Context) -> PartyEstimate:  # noqa: N802
        """How fast this machine is, or the sizes that this party publishes."""
        return await self._estimates.answer(request, coordinator_of(context, self._me))

    async def Propose(self, request: control.SignedProposal, context: Context) -> control.Decision:  # noqa: N802
        """Agrees to a job, refuses it with the rule that forbids it, or leaves it to a person."""
        job, approval = await self._host.propose(request, coordinator_of(context, self._me))
        return control.Decision(job_id=job.id, approval=approval)

    async def Queue(self, request: control.QueueRequest, context: Context) -> AsyncIterator[control.Place]:  # noqa: N802
        """The job's place among those that wait for their turn, up to its turn, which lasts as long as the call."""
        job = await self._host.find(request.job_id, coordinator_of(context, self._me))
        async with aclosing(self._host.queue(job, wait=request.wait)) as places:
            async for place in places:
                yield control.Place(place=place)

    async def Start(self, request: control.StartRequest, context: Context) -> control.Started:  # noqa: N802
        """Begins this party's part in a job to which all parties have agreed."""
        job = await self._host.find(request.job_id, coordinator_of(context, self._me))
        check_approvals(
            request.approvals,
            self._identity.trust,
            job_id=job.id,
            coordinator=job.coordinator,
            parties=job.spec.job.parties,
            lasts_s=job.spec.job.deadline_s,
        )
        check_own_span(self._identity, job.spec.job.deadline_s)
        await self._host.start(job, request.attempt, request.approvals, request.seed)
        return control.Started()

    async def Watch(self, request: control.WatchRequest, context: Context) -> AsyncIterator[control.JobEvent]:  # noqa: N802
        """The job as it stands, then what happens, up to its end."""
        job = await self._host.find(request.job_id, coordinator_of(context, self._me))
        async for event in job.watch():
            yield event

    async def Deal(self, request: control.DealtPart, context: Context) -> control.DealtTaken:  # noqa: N802
        """A piece of what this party has asked for, where the coordinator deals randomness."""
        job = await self._host.find(request.job_id, coordinator_of(context, self._me))
        if job.dealings is None:
            raise UnexpectedMessage(f"nobody deals randomness to {self._me} in this job", party=self._me)
        job.dealings.take(request)
        return control.DealtTaken()

    async def Result(self, request: control.ResultRequest, context: Context) -> AsyncIterator[control.ResultPart]:  # noqa: N802
        """The signed release, then the result in pieces where this party may give it to the coordinator."""
        released = await self._host.result(await self._host.find(request.job_id, coordinator_of(context, self._me)))
        yield control.ResultPart(header=released.header)
        for begin in range(0, len(released.table), CHUNK_BYTES):
            yield control.ResultPart(table=released.table[begin : begin + CHUNK_BYTES])

    async def Cancel(self, request: control.CancelRequest, context: Context) -> control.Cancelled:  # noqa: N802
        """Ends a job here and tells its peers; does nothing where it has ended, or never came."""
        coordinator = coordinator_of(context, self._me)
        with contextlib.suppress(UnexpectedMessage):
            await self._host.cancel(await self._host.find(request.job_id, coordinator, judged=True), request.reason)
        return control.Cancelled()
