"""Plans a job: asks its parties how fast they are and what sizes they publish; moves no data and proposes nothing."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from coordinator.client import ANSWER_S, PartyClient
from coordinator.talks import each, introduce
from crypto.params import STANDARD_128
from crypto.protocols import joint_prf
from jobs.plan import Plan
from jobs.plan.estimate import estimate
from jobs.plan.expected import total_rows
from jobs.plan.privacy import is_amount
from jobs.spec import JobSpec
from link.errors import MalformedMessage
from link.identity import Identity
from mining.joint.vertical.local_columns import CLASSES
from protos.v1.control_pb2_grpc import ControlStub
from protos.v1.plan_pb2 import ColumnSizes, EstimateRequest, PartyEstimate, SetSize

_PINGS: Final = 3
_MOST_S: Final = 60.0  # of a single operation
_MOST_ROWS: Final = 1 << 50
_MOST_LENGTHS: Final = 4096
_MOST_CERTIFICATE_BYTES: Final = 1 << 16


async def plan_job(spec: JobSpec, identity: Identity, addresses: Mapping[str, str]) -> Plan:
    """What the job will cost and disclose.

    Args:
        spec: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.

    Raises:
        ComineError: A party cannot be reached, would refuse the job, or cannot read its data.
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
        n_rows = total_rows(answers)
        if n_rows is not None:
            request = EstimateRequest(spec=spec.canonical(), n_rows=n_rows)
            for party, answer in (await each(clients, lambda client: _ask(client, request))).items():
                if answer.HasField("sizes"):
                    answers[party].sizes.CopyFrom(answer.sizes)
        return await asyncio.to_thread(estimate, spec, answers, latency_s)


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
    speed, sizes = answer.speed, answer.sizes
    seconds = (getattr(speed, field.name) for field in speed.DESCRIPTOR.fields)
    return (
        answer.party == party
        and answer.rows_public in ("exact", "rounded", "hidden")
        and (answer.rows_public == "hidden") is not answer.HasField("n_rows")
        and answer.n_rows <= _MOST_ROWS
        and answer.certificate_bytes <= _MOST_CERTIFICATE_BYTES
        and all(math.isfinite(each) and 0 <= each <= _MOST_S for each in seconds)
        and all(len(told) <= _MOST_LENGTHS for told in (sizes.candidates, sizes.frequent, sizes.rules, sizes.levels))
        and all(number <= _MOST_ROWS for number in (*sizes.candidates, *sizes.frequent, *sizes.rules))
        and all(map(is_amount, (answer.left.local_epsilon, answer.left.epsilon, answer.left.delta)))
        and sizes.held_rung <= joint_prf.rung(joint_prf.MAX_ELEMENTS)
        and _possible_columns(sizes.columns)
        and _possible((sizes.items, sizes.held, sizes.itemsets, sizes.closure, *sizes.levels))
    )


def _possible_columns(told: ColumnSizes) -> bool:
    return (
        max(told.columns, told.column_bytes, told.item_bytes) <= _MOST_ROWS
        and len(told.lengths) <= _MOST_LENGTHS
        and all(
            len(each.itemsets) == CLASSES and all(number <= _MOST_ROWS for number in each.itemsets)
            for each in told.lengths
        )
    )


def _possible(told: Iterable[SetSize]) -> bool:
    most = STANDARD_128.max_elements.bit_length()
    return all(
        size.elements <= _MOST_ROWS
        and size.rung <= most
        and size.blocks <= STANDARD_128.max_blocks
        and 0 <= size.novelty <= 1
        for size in told
    )
