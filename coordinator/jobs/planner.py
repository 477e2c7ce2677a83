"""Plans a job: asks its parties how fast they are and what their owners publish of sizes; proposes nothing."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from coordinator.jobs.client import PartyClient
from coordinator.jobs.party_calls import each, introduce
from coordinator.node_client import ANSWER_S
from jobs.plan import Plan
from jobs.plan.floor import Said, of_all
from jobs.plan.forecast import forecast
from jobs.plan.predicted import sizes_message, sizes_of
from jobs.plan.privacy import is_amount
from jobs.spec.job import JobSpec
from link.errors import MalformedMessage
from link.pki.identity import Identity
from protos.v1.control_pb2_grpc import ControlStub
from protos.v1.plan_pb2 import EstimateRequest, PartyEstimate

_PINGS: Final = 3
_MOST_S: Final = 60.0  # of a single operation
_MOST_CERTIFICATE_BYTES: Final = 1 << 16
_MOST_MADE: Final = 1_000_000  # releases of the same rows


async def plan_job(spec: JobSpec, identity: Identity, addresses: Mapping[str, str]) -> Plan:
    """What the job will cost and disclose.

    Args:
        spec: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.

    Raises:
        ComineError: A party cannot be reached, or would refuse the job or another plan.
    """
    async with AsyncExitStack() as stack:
        clients = {}
        for party in spec.job.parties:
            clients[party] = PartyClient(identity, party, addresses[party])
            stack.push_async_callback(clients[party].close)
        await each(clients, introduce)
        latency_s = max([await _latency_s(client) for client in clients.values()])
        # All at once: parties that share a machine measure what each of them gets of it.
        answers = await each(clients, lambda client: _ask(client, EstimateRequest(spec=spec.canonical())))
        found = await asyncio.to_thread(forecast, spec, answers, latency_s)
        said = of_all(spec, {party: sizes_of(answer.sizes) for party, answer in answers.items()})
        return found.model_copy(update={"coordinator": identity.name, **_told(found, said)})


def _told(plan: Plan, said: Said | None) -> dict[str, Any]:
    if said is None:
        return {}
    return {"warning": said.sentence} if said.warns else {"advice": [*plan.advice, said.sentence]}


async def _latency_s(client: PartyClient) -> float:
    """Seconds of one way to a party, its answer included: half of the quickest of some calls."""
    quickest = math.inf
    for _ in range(_PINGS):
        begin = time.perf_counter()
        await client.describe()
        quickest = min(quickest, time.perf_counter() - begin)
    return quickest / 2


async def _ask(client: PartyClient, request: EstimateRequest) -> PartyEstimate:
    control: Any = ControlStub(client.channel)
    answer: PartyEstimate = await client.call(control.Estimate(request, timeout=ANSWER_S))
    if not _sensible(answer, client.party):
        raise MalformedMessage(
            f"{client.party} answers with an estimate that no node can mean; check its version", party=client.party
        )
    return answer


def _sensible(answer: PartyEstimate, party: str) -> bool:
    speed, left = answer.speed, answer.left
    seconds = (getattr(speed, field.name) for field in speed.DESCRIPTOR.fields)
    return (
        answer.party == party
        and sizes_message(sizes_of(answer.sizes)) == answer.sizes
        and answer.release <= _MOST_MADE
        and answer.certificate_bytes <= _MOST_CERTIFICATE_BYTES
        and all(math.isfinite(each) and 0 <= each <= _MOST_S for each in seconds)
        and all(map(is_amount, (left.local_epsilon, left.epsilon, left.delta)))
    )
