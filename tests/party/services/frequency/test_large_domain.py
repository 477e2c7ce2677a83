"""A domain whose labels fit no message, from the coordinator to a device and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from client.connection import Connection
from client.outcome import Delivery, Status
from client.reporter import FrequencyClient
from coordinator.frequency.service import FrequencyNode
from jobs.collections.spec import MAX_LABEL_BYTES, labels_of
from protos.v1 import frequency_pb2 as pb
from tests.errors import fails
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import running
from tests.party.services.frequency.specs import spec_of

VALUES = 1_000_000


@pytest.mark.slow
def test_a_million_labels_reach_a_device_and_its_report_is_counted(tmp_path: Path) -> None:
    labels = [f"page-{number}" for number in range(VALUES)]
    lines = labels_of(labels)
    assert len(lines) > 8 << 20

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = FrequencyNode(world.authority.issue("analyst", "coordinator"), "north", world.address)
            created = await analyst.create(spec_of(size=VALUES, labelled=True, mechanism="hr", epsilon="8.0"), lines)
            phone = world.authority.issue("phone", "client")

            def report() -> Delivery:
                with (
                    FrequencyClient.open(tmp_path / "phone") as device,
                    Connection(phone, "north", world.address) as connection,
                ):
                    made = device.report(device.follow(connection, "homepages"), labels[-1])
                    assert made.status == Status.REPORTED
                    return device.deliver(connection)

            assert (await asyncio.to_thread(report)).counted == 1
            estimates = await analyst.estimate(pb.FrequencyRequest(collection="homepages", most=3))
            assert (estimates.head.reports, len(estimates.codes)) == (1, 3)
            domain = await analyst.domain(created)
            assert domain is not None
            assert domain.labels == tuple(labels)
            await analyst.close()

    asyncio.run(test())


def test_labels_beyond_the_limit_are_refused_while_they_come(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = FrequencyNode(world.authority.issue("analyst", "coordinator"), "north", world.address)
            spec = spec_of(size=VALUES, labelled=True, mechanism="hr")
            with fails("E403", party="north"):
                await analyst.create(spec, bytes(MAX_LABEL_BYTES + 1))
            await analyst.close()

    asyncio.run(test())


def test_what_the_policy_does_not_allow_is_refused_before_labels_are_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_epsilon = 0.5") as world:
            begun = asyncio.Event()

            async def requests() -> AsyncIterator[pb.CreateCollectionRequest]:
                yield pb.CreateCollectionRequest(spec=spec_of(size=3, labelled=True).canonical(), labels=b"a\n")
                begun.set()
                await asyncio.Event().wait()  # further labels never come

            refusal = await refused(world.analyst.stub.Create(requests()))
            assert "(rule max_epsilon)" in refusal.sentence
            assert begun.is_set()

    asyncio.run(test())
