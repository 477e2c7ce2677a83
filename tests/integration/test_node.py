"""Nodes with real certificates on real ports: in one event loop, and as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import party.jobs.execution
import party.jobs.open_jobs
import party.jobs.session_host
from crypto.primitives.randomness import Randomness
from jobs.audit.events import Event
from jobs.audit.log import AuditLog
from jobs.consent import propose
from jobs.description import read
from jobs.federation import Federation
from jobs.kinds.packed_itemsets import digest, unpack
from jobs.kinds.registry import kind_of
from jobs.results.release import verify
from jobs.run import PartyRun
from link.errors import ResourceError
from link.pki.authority import Authority
from link.pki.identity import Role
from link.pki.trust import Trust
from link.session import Session
from link.transports.grpc_channel import SERVER_OPTIONS
from link.transports.serving import Serving
from mining.reference.pooled import brute_force
from party.config import PartyConfig
from party.examination import examine
from party.node.logs import open_log
from party.server import Node
from party.state.database import is_locked
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.party.files import free_ports, party_toml, write_federation
from tests.party.nodes import DATA, Client, hold, refused, running, weekly

pytestmark = pytest.mark.usefixtures("few_fakes")


@pytest.mark.parametrize("recipients", [["all"], ["south"]])
def test_a_job_gives_the_pooled_result_to_its_recipients_alone(tmp_path: Path, recipients: list[str]) -> None:
    spec = weekly(recipients=recipients)
    expected = brute_force((row for rows in DATA.values() for row in rows), 36)
    assert len(expected) > 20

    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, ends = await nodes.run(spec)
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
            for name, client in nodes.clients.items():
                header, table = await client.result(job_id)
                release = verify(header, trust=Trust(nodes.authority.certificate_pem), party=name, job_id=job_id)
                assert release.n_rows == 180
                assert set(release.receipts_from) == set(DATA) - {name}
                assert ends[name].bytes_sent == release.bytes_sent > 0
                assert bool(release.result_digest) == (spec.to_coordinator and name in spec.learners)
                assert bool(table) == (spec.to_coordinator and name in spec.learners)
                if table:
                    assert digest(table) == release.result_digest
                    assert {frozenset(items): count for items, count in unpack(table).itemsets} == expected
                folder = tmp_path / "state" / name / "results" / job_id.hex()
                assert (folder / "itemsets.csv").is_file() == (name in recipients or "all" in recipients)

    asyncio.run(test())


def test_nodes_describe_themselves_and_tell_their_health(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            client = nodes.clients["south"]
            challenge = bytes(range(32))
            signed = await client.stub.Describe(control.DescribeRequest(challenge=challenge))
            described = read(signed, challenge, client.identity.trust, "south")
            assert (described.name, list(described.tasks)) == ("south", ["itemsets", "rules"])
            assert set(described.peers) == {"north", "east"}
            assert [(d.name, d.kind) for d in described.datasets] == [("baskets", "transactions")]
            assert described.suite
            assert described.wire
            health = health_pb2_grpc.HealthStub(client.channel)
            for service in ("", "comine.v1.Control", "comine.v1.Link"):
                answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            reflection = reflection_pb2_grpc.ServerReflectionStub(client.channel)
            call = reflection.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
            (answer,) = [answer async for answer in call]
            names = {service.name for service in answer.list_services_response.service}
            assert {"comine.v1.Control", "comine.v1.Link", "grpc.health.v1.Health"} <= names

    asyncio.run(test())


# -- refusals --------------------------------------------------------------------------------------------------------
def test_the_policy_refuses_with_code_party_and_rule(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="min_support = 0.5") as nodes:
            for client in nodes.clients.values():
                refusal = await refused(client.propose(weekly()))
                assert refusal.status is grpc.StatusCode.PERMISSION_DENIED
                assert (refusal.code, refusal.party) == ("E300", client.name)
                assert "min_support of at least 0.5" in refusal.sentence
            log = [json.loads(line) for line in nodes.logs["north"].getvalue().splitlines()]
            assert (log[-1]["event"], log[-1]["code"]) == ("call refused", "E300")

    asyncio.run(test())


def test_a_count_is_refused_where_only_fractions_have_a_floor_whatever_the_rows_are(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="min_support = 0.1") as nodes:
            for count in (1, 5, 6, 180):
                refusal = await refused(nodes.clients["north"].propose(weekly(itemsets={"min_support": count})))
                assert (refusal.code, "rule min_support" in refusal.sentence) == ("E300", True)

    asyncio.run(test())


def test_min_count_holds_for_a_fraction_too_as_soon_as_all_rows_are_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="min_support = 0.1\nmin_count = 37") as nodes:
            _, ends = await nodes.run(weekly())  # 0.2 of 180 transactions: 36
            assert {(event.state, event.error_code) for event in ends.values()} == {(control.FAILED, "E300")}
            assert all("at least 37 (rule min_count)" in event.error_message for event in ends.values())
            advice = "set min_support to a count of at least 37, or to a larger fraction"
            assert all(advice in event.error_message for event in ends.values())
            assert all("36" not in event.error_message for event in ends.values())

    asyncio.run(test())


def test_a_call_that_lasts_holds_up_no_other_of_its_coordinator(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north = nodes.clients["north"]
            job_id = await north.propose(weekly(), os.urandom(16))
            watching = [north.stub.Watch(control.WatchRequest(job_id=job_id)) for _ in range(3)]
            async with asyncio.timeout(20):
                for each in watching:
                    assert (await each.read()).state == control.APPROVED
                await north.stub.Describe(control.DescribeRequest(challenge=bytes(32)))
                await north.cancel(job_id)
                for each in watching:
                    assert (await each.read()).state == control.CANCELLED

    asyncio.run(test())


def test_a_loop_that_is_torn_down_leaves_nothing_to_write_into_what_is_freed(tmp_path: Path) -> None:
    """As `asyncio.run` does after an exception out of the loop itself, such as the time limit of a test."""
    write_federation(tmp_path, DATA)

    async def test() -> None:
        node = Node(PartyConfig.load(tmp_path / "north.toml"), open_log("north", io.StringIO()))
        await node.start()
        await asyncio.sleep(0.1)  # until gRPC waits for calls
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.1)
        took_their_place = [b"\xff" * (size - 33) for size in range(176, 281, 8) for _ in range(2000)]
        with contextlib.suppress(asyncio.CancelledError):
            await node.stop()
        assert not [each for each in took_their_place if each.strip(b"\xff")]

    asyncio.run(test())


def test_a_stop_that_was_cancelled_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled while a call that lasts is given time to end."""
    monkeypatch.setattr("party.server.GRACE_S", 60.0)
    authority = write_federation(tmp_path, DATA)
    config = PartyConfig.load(tmp_path / "north.toml")

    async def test() -> None:
        node = Node(config, open_log("north", io.StringIO()))
        client = Client(authority.issue("analyst", "coordinator"), "north", await node.start())
        stop_serving, stopping = Serving.stop, asyncio.Event()

        async def told(server: Serving, grace: float | None) -> None:
            stopping.set()
            await stop_serving(server, grace)

        monkeypatch.setattr(Serving, "stop", told)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        lasts = reflection_pb2_grpc.ServerReflectionStub(client.channel).ServerReflectionInfo()
        await lasts.write(asked)
        assert await lasts.read() is not grpc.aio.EOF
        first = asyncio.ensure_future(node.stop())
        await stopping.wait()
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.wait({first})
        assert not lasts.done()
        monkeypatch.setattr("party.server.GRACE_S", 0.1)
        await node.stop()
        async with asyncio.timeout(10):
            assert await lasts.code() is not grpc.StatusCode.OK
        await client.channel.close()

    asyncio.run(test())


def test_only_coordinators_of_the_federation_may_call(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            refusal = await refused(nodes.client(nodes.authority.issue("east")).propose(weekly()))
            assert (refusal.status, refusal.code) == (grpc.StatusCode.PERMISSION_DENIED, "E201")
            watching = nodes.client(nodes.authority.issue("south")).watch(bytes(32))
            assert (await refused(watching)).code == "E201"
            foreign = nodes.client(Authority.create().issue("analyst", "coordinator"))
            assert (await refused(foreign.propose(weekly()))).status is grpc.StatusCode.UNAVAILABLE

    asyncio.run(test())


@pytest.mark.parametrize(
    ("method", "right", "wrong"),
    [
        ("/comine.v1.Control/Describe", "coordinator", "party"),
        ("/comine.v1.Control/Propose", "coordinator", "client"),
        ("/comine.v1.Control/Watch", "coordinator", "party"),  # a stream of answers
        ("/comine.v1.FrequencyEstimation/Submit", "client", "coordinator"),  # streams of requests
        ("/comine.v1.FrequencyEstimation/Describe", "client", "party"),
        ("/comine.v1.Shuffler/Forward", "party", "client"),
        ("/comine.v1.Shuffler/Create", "coordinator", "party"),
        ("/comine.v1.Anonymization/Query", "coordinator", "party"),
    ],
)
def test_a_request_that_cannot_be_read_is_its_callers_fault(
    tmp_path: Path, method: str, right: Role, wrong: Role
) -> None:
    tables = '[frequency]\nmax_epsilon = 8.0\n[shuffler]\nmin_batch = 2\ngateways = ["client/fleet"]'

    async def test() -> None:
        async with running(tmp_path, data={"north": DATA["north"]}, policy=tables) as nodes:
            for role, status, code, sentence in (
                (right, grpc.StatusCode.INVALID_ARGUMENT, "E402", "west sent north a request"),
                (wrong, grpc.StatusCode.PERMISSION_DENIED, "E201", f"and west is a {wrong}"),
            ):
                channel = nodes.client(nodes.authority.issue("west", role)).channel
                refusal = await refused(channel.unary_stream(method)(b"\xff" * 200).read())
                assert (refusal.status, refusal.code) == (status, code), refusal
                assert sentence in refusal.sentence
                assert refusal.party == ("west" if role == right else "north")
            events = [json.loads(line)["event"] for line in nodes.logs["north"].getvalue().splitlines()]
            assert events == ["ready", "call refused", "call refused"]

    asyncio.run(test())


def test_another_coordinator_cannot_see_a_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id = await nodes.clients["north"].propose(weekly())
            rival = nodes.client(nodes.authority.issue("rival", "coordinator"))
            for call in (rival.start(job_id, []), rival.watch(job_id), rival.result(job_id)):
                assert "no such job of rival" in (await refused(call)).sentence
            await rival.cancel(job_id)  # as if there were none
            async for event in nodes.clients["north"].stub.Watch(control.WatchRequest(job_id=job_id)):
                assert event.state == control.APPROVED
                break

    asyncio.run(test())


def test_bad_proposals_are_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north, now = nodes.clients["north"], int(time.time())
            assert (await refused(north.propose(weekly(), expiry=now - 1))).code == "E600"
            assert (await refused(north.propose(weekly(), expiry=now + 8 * 86_400))).code == "E300"
            assert (await refused(north.propose(weekly(), nonce=b"short"))).code == "E402"
            assert (await refused(north.propose(weekly(dataset="sales")))).code == "E100"
            assert (await refused(north.propose(weekly(parties=["south", "east"])))).code == "E100"
            loose = mock.Mock(canonical=lambda: weekly().canonical() + b" ")
            signed = propose(loose, north.identity, nonce=bytes(16), expiry=now + 60)
            refusal = await refused(north.stub.Propose(signed))
            assert (refusal.code, refusal.party) == ("E100", "north")
            assert "canonical" in refusal.sentence

    asyncio.run(test())


def test_a_proposal_and_a_start_are_accepted_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["north"])
            north, expiry = nodes.clients["north"], int(time.time()) + 60
            job_id = await north.propose(weekly(), expiry=expiry)
            approvals = nodes.forged(job_id, weekly())
            assert (await refused(north.propose(weekly(), expiry=expiry))).code == "E401"
            assert (await refused(north.result(job_id))).code == "E401"
            assert (await refused(north.start(job_id, approvals, attempt=0))).code == "E401"
            await north.start(job_id, approvals)
            for attempt in (1, 2):
                assert (await refused(north.start(job_id, approvals, attempt))).code == "E401"
            await north.cancel(job_id)
            assert (await refused(north.start(job_id, approvals))).code == "E401"
            await north.cancel(job_id)  # once more changes nothing

    asyncio.run(test())


def test_a_proposal_that_is_never_started_ends_at_its_expiry(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north, jobs = nodes.clients["north"], nodes.nodes["north"].host.jobs
            jobs.now = lambda: time.time() + 599  # so that the end is near once it is awaited
            events = await north.watch(await north.propose(weekly()))
            assert [event.state for event in events] == [control.APPROVED, control.EXPIRED]
            assert events[-1].error_code == "E600"

    asyncio.run(test())


# -- several jobs ----------------------------------------------------------------------------------------------------
def test_no_more_jobs_run_at_once_than_allowed(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, party="max_running = 1") as nodes:
            north = nodes.clients["north"]
            hold(nodes.nodes["north"])
            first, second = [await north.propose(weekly(), nonce=bytes([i]) * 16) for i in (1, 2)]
            await north.start(first, nodes.forged(first, weekly()))
            refusal = await refused(north.start(second, nodes.forged(second, weekly())))
            assert (refusal.status, refusal.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "E103")
            await north.cancel(first)
            await north.start(second, nodes.forged(second, weekly()))

    asyncio.run(test())


def test_several_jobs_run_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            specs = [weekly(itemsets={"min_support": share}) for share in ("0.2", "0.3", "0.4")]
            runs = await asyncio.gather(*(nodes.run(spec) for spec in specs))
            assert all(event.state == control.SUCCEEDED for _, ends in runs for event in ends.values())

    asyncio.run(test())


def test_a_coordinator_has_only_so_many_open_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.jobs.open_jobs, "MAX_OPEN", 2)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            north, expiry = nodes.clients["north"], int(time.time()) + 60
            first, _ = [await north.propose(weekly(), bytes([i]) * 16, expiry) for i in (1, 2)]
            assert (await refused(north.propose(weekly(), bytes([3]) * 16, expiry))).code == "E103"
            await nodes.client(nodes.authority.issue("other", "coordinator")).propose(weekly(), bytes(16), expiry)
            await north.cancel(first)
            assert (await refused(north.propose(weekly(), bytes([1]) * 16, expiry))).code == "E401"
            await north.propose(weekly(), bytes([3]) * 16, expiry)
            assert [event.state for event in await north.watch(first)] == [control.CANCELLED]

    asyncio.run(test())


def test_a_job_that_has_ended_leaves_memory_at_once_whatever_its_expiry(tmp_path: Path) -> None:
    """What is left of it is on the disk, from where it is still refused to be proposed again."""
    catalogue = [f"item{i:04}" for i in range(3000)]
    long = weekly(itemsets={"catalogue": catalogue})

    async def test() -> None:
        async with running(tmp_path) as nodes:
            host, north, expiry = nodes.nodes["north"].host, nodes.clients["north"], int(time.time()) + 6 * 86_400
            kept: list[weakref.ref[Any]] = []
            for i in range(3):
                job_id = await north.propose(long, bytes([i]) * 16, expiry)
                (open_job,) = host.jobs
                kept += [weakref.ref(open_job), weakref.ref(open_job.spec)]
                del open_job
                await north.cancel(job_id)
            with pytest.raises(grpc.aio.AioRpcError):
                await north.propose(weekly(dataset="sales"), expiry=expiry)
            _, ends = await nodes.run(weekly())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            assert list(host.jobs) == []
            gc.collect()
            assert [each() for each in kept] == [None] * 6
            assert (await refused(north.propose(long, bytes(16), expiry))).code == "E401"

    asyncio.run(test())


def test_open_proposals_of_a_coordinator_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = weekly(itemsets={"catalogue": [f"item{i:04}" for i in range(3000)]})
    monkeypatch.setattr(party.jobs.open_jobs, "MAX_OPEN_BYTES", 3 * len(long.canonical()) + 9000)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            north, expiry = nodes.clients["north"], int(time.time()) + 60
            calls = (north.propose(long, bytes([i]) * 16, expiry) for i in range(5))  # all at once
            answers = await asyncio.gather(*calls, return_exceptions=True)
            job_ids = [answer for answer in answers if isinstance(answer, bytes)]
            assert len(job_ids) == 3
            refusal = await refused(north.propose(long, bytes([9]) * 16, expiry))
            assert (refusal.code, refusal.party) == ("E103", "north")
            assert "fill the" in refusal.sentence
            await nodes.client(nodes.authority.issue("other", "coordinator")).propose(long, bytes([7]) * 16, expiry)
            await north.cancel(job_ids[0])
            await north.propose(long, bytes([9]) * 16, expiry)

    asyncio.run(test())


# -- early ends ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("held", ["north", "east", "south"])
def test_cancelling_at_one_party_ends_the_job_at_all(tmp_path: Path, held: str) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes[held])
            job_id = await nodes.begin(weekly())
            await nodes.clients["south"].cancel(job_id, "the figures are not needed")
            for name, event in (await nodes.ends(job_id)).items():
                assert (event.state, event.error_code) == (control.CANCELLED, "E500"), name
                assert "cancelled at south: the figures are not needed" in event.error_message

    asyncio.run(test())


def test_a_job_can_be_cancelled_before_its_first_step(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            host, north = nodes.nodes["north"].host, nodes.clients["north"]
            job, _ = await host.propose(north.signed(weekly()), "analyst")
            await host.start(job, 1, [])
            await host.cancel(job, "")
            assert job.state == control.CANCELLED
            assert host.running == 0

    asyncio.run(test())


def test_a_node_that_dies_fails_the_job_at_the_others_by_name(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            job_id = await nodes.begin(weekly())
            await nodes.crash("south")
            for name in ("north", "east"):
                event = (await nodes.clients[name].watch(job_id))[-1]
                assert (event.state, event.error_code) == (control.FAILED, "E200"), event
                assert "south" in event.error_message

    asyncio.run(test())


def test_unreadable_data_fails_the_job_without_telling_others_why(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            (tmp_path / "east.dat").unlink()
            _, ends = await nodes.run(weekly())
            for event in ends.values():
                assert (event.state, event.error_code) == (control.FAILED, "E101")
                assert "east cannot take part in this job with its data" in event.error_message
                assert "east.dat" not in event.error_message
            assert "east.dat" in nodes.logs["east"].getvalue()
            (tmp_path / "east.dat").write_text("item0\n")
            _, ends = await nodes.run(weekly())
            assert ends["east"].state == control.SUCCEEDED

    asyncio.run(test())


def test_an_unforeseen_fault_is_not_described_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*args: Any, **kwargs: Any) -> PartyRun:
        raise KeyError("milk")

    async def test() -> None:
        async with running(tmp_path) as nodes:
            monkeypatch.setattr(party.jobs.execution, "run_party", faulty)
            _, ends = await nodes.run(weekly())
            for event in ends.values():
                assert (event.state, event.error_code) == (control.FAILED, "E700")
                assert "milk" not in event.error_message
            logs = "".join(log.getvalue() for log in nodes.logs.values())
            assert '"KeyError"' in logs
            assert "milk" not in logs

    asyncio.run(test())


def test_too_little_memory_is_no_fault_of_comine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(kind_of(weekly()))
    run = kind.run

    async def starved(self: Any, session: Session, *rest: Any) -> Any:
        if session.me == "north":
            raise MemoryError
        return await run(self, session, *rest)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            monkeypatch.setattr(kind, "run", starved)
            _, ends = await nodes.run(weekly())
            for event in ends.values():
                assert (event.state, event.error_code, event.error_party) == (control.FAILED, "E103", "north")
                assert "north lacks disk space or memory for this job" in event.error_message

    asyncio.run(test())


def test_a_job_leaves_nothing_in_the_state_folder_but_what_the_reference_names(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference-party-toml.md").read_text()
    rows = re.findall(r"^\|([^|]+)\|", page.partition("## The state folder")[2].partition("Files are")[0], re.MULTILINE)
    named = {name.partition("/")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}

    async def test() -> None:
        async with running(tmp_path) as nodes:
            _, ends = await nodes.run(weekly(recipients=["all"]))
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}

    asyncio.run(test())
    kept = {path.name for path in (tmp_path / "state" / "north").iterdir()}
    assert {"node.db", "audit.log", "results"} <= kept <= named


def test_every_job_draws_from_the_system_and_from_no_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, drawn = Randomness.from_os, []

    def from_os() -> Randomness:
        drawn.append(original())
        return drawn[-1]

    def never(*args: Any) -> Randomness:
        raise AssertionError("a node must not draw from a seed")

    monkeypatch.setattr(Randomness, "from_os", from_os)
    monkeypatch.setattr(Randomness, "from_seed", never)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            drawn.clear()
            _, ends = await nodes.run(weekly())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            assert len(drawn) == 3  # of each party the session's

    asyncio.run(test())


def test_stopping_a_node_cancels_its_jobs_everywhere(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["east"])
            job_id = await nodes.begin(weekly())
            await nodes.nodes["north"].stop()
            for name in ("south", "east"):
                event = (await nodes.clients[name].watch(job_id))[-1]
                assert event.state == control.CANCELLED
                assert "cancelled at north" in event.error_message
            assert (await refused(nodes.clients["north"].propose(weekly()))).status is grpc.StatusCode.UNAVAILABLE

    asyncio.run(test())


# -- starting --------------------------------------------------------------------------------------------------------
def start_node(path: Path) -> None:
    async def test() -> None:
        node = Node(PartyConfig.load(path), open_log("north", io.StringIO()))
        try:
            await node.start()
        finally:
            await node.stop()

    asyncio.run(test())


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path):
            twin = tmp_path / "twin.toml"
            twin.write_text((tmp_path / "north.toml").read_text().replace("state/north", "state/twin"))
            node = Node(PartyConfig.load(twin), open_log("north", io.StringIO()))
            with fails("E103"):
                await node.start()
            await node.stop()

    asyncio.run(test())


def test_a_state_folder_is_for_one_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            log = tmp_path / "state/north/audit.log"
            twin, before = tmp_path / "twin.toml", log.read_bytes()
            (port,) = free_ports(1)
            written = re.sub(r'listen = ".*"', f'listen = "127.0.0.1:{port}"', (tmp_path / "north.toml").read_text())
            twin.write_text(written)
            config = PartyConfig.load(twin)
            in_use = r"this node is running already: its process holds .*state/north/node\.db; look at it with .*"
            with fails("E100"):
                Node(config, open_log("north", io.StringIO()))
            assert log.read_bytes() == before
            for file, status in ((twin, "problem"), (tmp_path / "north.toml", "ok")):
                found = {each.subject: each for each in (await asyncio.to_thread(examine, file)).findings}
                assert (found["port"].status, found["state"].status) == ("ok", status)
                assert bool(re.fullmatch(in_use, found["state"].sentence)) == (status == "problem")
            with contextlib.closing(Store.open(tmp_path / "state/north/node.db")) as store:  # as the inbox does
                assert store.all() == []
            await nodes.nodes["north"].stop()
            node = Node(config, open_log("north", io.StringIO()))
            try:
                await node.start()
            finally:
                await node.stop()

    asyncio.run(test())


def test_a_node_that_cannot_be_made_leaves_the_state_folder_to_others(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    releases = tmp_path / "state/north/releases.db"
    releases.mkdir(parents=True)
    with fails("E103"):
        start_node(tmp_path / "north.toml")
    releases.rmdir()
    start_node(tmp_path / "north.toml")


def test_the_state_folder_of_a_killed_node_is_free(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    with serve(tmp_path / "north.toml") as process:
        until_ready(process)
        with serve(tmp_path / "north.toml") as second:
            _, err = second.communicate(timeout=60)
            assert second.returncode == 10
            assert "this node is running already" in err
            assert "state_dir" not in err  # in another folder it would know of no job, and of no limit that is used up
            assert len(err.splitlines()) == 1
        process.kill()
        process.communicate()
    start_node(tmp_path / "north.toml")


def test_who_starts_a_node_that_cannot_write_its_audit_log_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "the audit log cannot be written (No space left on device)"

    async def full(_: AuditLog, *__: Event) -> None:
        raise ResourceError(why)

    write_federation(tmp_path, DATA)
    monkeypatch.setattr(AuditLog, "record", full)
    log = io.StringIO()

    async def test() -> None:
        node = Node(PartyConfig.load(tmp_path / "north.toml"), open_log("north", log))
        try:
            with pytest.raises(ResourceError) as told:
                await node.start()
            assert told.value.message == why
        finally:
            await node.stop()

    asyncio.run(test())
    assert [json.loads(line)["event"] for line in log.getvalue().splitlines()] == ["audit not written"]
    assert not is_locked(tmp_path / "state/north/node.db")


def test_a_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    contents = (tmp_path / "north.toml").read_text()
    (tmp_path / "north.toml").write_text(contents.replace("pki/north.", "pki/south."))
    with fails("E201"):
        start_node(tmp_path / "north.toml")
    coordinator = authority.issue("north", "coordinator")
    (tmp_path / "pki" / "south.crt").write_bytes(coordinator.certificate_pem)
    (tmp_path / "pki" / "south.key").write_bytes(coordinator.key_pem)
    with fails("E201"):
        start_node(tmp_path / "north.toml")


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    old = authority.issue("north", valid_days=-1)
    (tmp_path / "pki" / "north.crt").write_bytes(old.certificate_pem)
    (tmp_path / "pki" / "north.key").write_bytes(old.key_pem)
    with fails("E201"):
        start_node(tmp_path / "north.toml")


def test_a_state_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    (tmp_path / "state").write_text("a file in the way")
    with fails("E103"):
        start_node(tmp_path / "north.toml")


def test_a_party_outside_its_federation_is_refused(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    (tmp_path / "west.toml").write_text(party_toml("west"))
    with fails("E100"):
        start_node(tmp_path / "west.toml")


# -- a process of its own --------------------------------------------------------------------------------------------
def serve(path: Path, hang_ups: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[str]:
    """A node's process. What it does at SIGHUP to begin with is given, since the tests may run under nohup."""
    command = [sys.executable, "-m", "comine", "party", "serve", str(path)]
    before = signal.signal(signal.SIGHUP, hang_ups)
    try:
        return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)


def until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.strip())
        if " is ready at " in line:
            return lines
    raise AssertionError(f"the node did not become ready: {lines}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_says_that_it_is_ready_and_ends_in_order_at_a_signal(tmp_path: Path, number: int) -> None:
    write_federation(tmp_path, DATA)
    address = Federation.load(tmp_path / "federation.toml").addresses["north"]
    with serve(tmp_path / "north.toml") as process:
        assert until_ready(process)[-1] == f"north is ready at {address}"
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert process.returncode == 0, err
        assert out == ""
        assert [json.loads(line)["event"] for line in err.splitlines()] == ["stopping", "stopped"]


def test_a_node_outlives_its_terminal_where_hang_ups_are_ignored(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    with serve(tmp_path / "north.toml", signal.SIG_IGN) as process:  # as nohup does
        until_ready(process)
        status = Path(f"/proc/{process.pid}/status").read_text()
        ignored = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)  # type: ignore[index]
        assert ignored >> (signal.SIGHUP - 1) & 1
        process.terminate()
        process.communicate(timeout=10)


def test_a_node_may_open_as_many_descriptors_as_the_system_allows(tmp_path: Path) -> None:
    write_federation(tmp_path, DATA)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))  # which a process that is begun inherits
    try:
        process = serve(tmp_path / "north.toml")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with process:
        until_ready(process)
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
        process.terminate()
        process.communicate(timeout=10)


def test_who_connects_and_shows_no_certificate_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = [(name, 500 if "handshake" in name else value) for name, value in SERVER_OPTIONS]
    assert dict(SERVER_OPTIONS)["grpc.server_handshake_timeout_ms"] == 10_000
    monkeypatch.setattr("party.server.SERVER_OPTIONS", shorter)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            host, port = nodes.addresses["north"].rsplit(":", 1)
            idle = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
            async with asyncio.timeout(20):
                assert [await reader.read() for reader, _ in idle] == [b""] * len(idle)  # which ends when they do
            for _, writer in idle:
                writer.close()
            _, ends = await nodes.run(weekly())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}

    asyncio.run(test())


def test_sigterm_cancels_a_running_job_at_all_parties(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            await nodes.nodes["north"].stop()
            process = serve(tmp_path / "north.toml")
            try:
                await asyncio.to_thread(until_ready, process)
                nodes.clients["north"] = nodes.client(nodes.authority.issue("analyst", "coordinator"))
                job_id = await nodes.begin(weekly())
                process.terminate()
                _, err = await asyncio.to_thread(process.communicate, timeout=10)
                assert process.returncode == 0, err
                for name in ("south", "east"):
                    event = (await nodes.clients[name].watch(job_id))[-1]
                    assert event.state == control.CANCELLED
                assert "cancelled at north" in event.error_message
            finally:
                process.kill()
                process.wait()

    asyncio.run(test())


def test_a_node_that_cannot_start_says_why_and_exits_by_the_kind_of_fault(tmp_path: Path) -> None:
    authority = write_federation(tmp_path, DATA)
    old = authority.issue("south", valid_days=-1)
    (tmp_path / "pki" / "south.crt").write_bytes(old.certificate_pem)
    (tmp_path / "pki" / "south.key").write_bytes(old.key_pem)
    for file, exit_code, sentence in (("absent.toml", 10, "does not exist"), ("south.toml", 20, "expired on")):
        with serve(tmp_path / file) as process:
            out, err = process.communicate(timeout=20)
            assert (process.returncode, out) == (exit_code, "")
            assert sentence in err
            assert "Traceback" not in err
            assert len(err.splitlines()) == 1


class Watched:
    """A connection to a database that notes which threads use it."""

    def __init__(self, inner: Any, threads: set[int]) -> None:
        self._inner, self._threads = inner, threads

    def execute(self, *arguments: Any) -> Any:
        self._threads.add(threading.get_ident())
        return self._inner.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_the_event_loop_never_waits_for_the_database(tmp_path: Path) -> None:
    """Or else a slow disk, or a long query, would stop the node's answers to everybody."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            threads = set[int]()
            for node in nodes.nodes.values():
                for user in (node.store, node.ledger):
                    user.connection = Watched(user.connection, threads)  # type: ignore[assignment]
            job_id, ends = await nodes.run(weekly(recipients=["all"]))
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            await nodes.clients["north"].result(job_id)
            hold(nodes.nodes["north"])
            await nodes.clients["north"].cancel(await nodes.begin(weekly()))
            await refused(nodes.clients["north"].propose(weekly(dataset="sales")))
            await refused(nodes.clients["north"].start(job_id, nodes.forged(job_id, weekly())))
            assert threads
            assert threading.get_ident() not in threads

    asyncio.run(test())
