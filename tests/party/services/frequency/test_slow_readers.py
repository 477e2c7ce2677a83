"""Readers of estimates who ask for many and take none: a node keeps few of them, and answers others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from link.transports.grpc_channel import WINDOW_BYTES, channel_credentials
from party.services.frequency import service
from protos.v1 import frequency_pb2 as pb
from protos.v1.frequency_pb2_grpc import FrequencyEstimationStub
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of

SIZE = 1 << 18  # values: estimates of 5 MB, more than a stream takes of whoever reads nothing
CALLS = 7
CHANNEL = (
    ("grpc.ssl_target_name_override", "north"),
    ("grpc.http2.bdp_probe", 0),  # which lets the caller's end take more and more on a busy machine
    ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
)


@pytest.mark.parametrize("method", ["Estimate", "Watch"])
def test_estimates_that_nobody_takes_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    made = 0

    def counted(*arguments: Any) -> Any:
        nonlocal made
        made += 1
        return answer(*arguments)

    def call(stub: Any) -> Any:
        asked = pb.FrequencyRequest(collection="homepages")
        return stub.Estimate(asked) if method == "Estimate" else stub.Watch(pb.WatchFrequencyRequest(what=asked))

    async def taken(call: Any) -> list[Any]:
        return [part async for part in call]

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, rival = world.analyst, world.caller("rival", "coordinator")
            access = {"gateways": {"phone": 10}, "read": ["rival"]}
            created = await analyst.create(spec_of(mechanism="grr", size=SIZE, access=access))
            await world.caller("phone").submit(batch(created, [1, 2], seed=1))
            await analyst.close()
            credentials = channel_credentials(analyst.identity)
            async with grpc.aio.secure_channel(world.address, credentials, CHANNEL) as channel:
                calls = [call(FrequencyEstimationStub(channel)) for _ in range(CALLS)]
                await asyncio.wait(
                    [asyncio.ensure_future(each.initial_metadata()) for each in calls],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                assert len((await rival.estimate()).counts) == SIZE  # who reads waits for nobody
                assert made <= 3
                assert all(await asyncio.gather(*map(taken, calls)))  # all come, once those before are taken
                assert made == CALLS + 1

    answer = service.answer
    monkeypatch.setattr(service, "answer", counted)
    monkeypatch.setattr(service, "ANSWER_BYTES", 2 * SIZE * service.VALUE_BYTES)
    asyncio.run(test())
