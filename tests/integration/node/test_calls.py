"""Who may call a node, and with what; what it tells and refuses."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from jobs.consent import propose
from jobs.description import read
from link.pki.authority import Authority
from link.pki.identity import Role
from link.transports.grpc_channel import SERVER_OPTIONS
from protos.v1 import control_pb2 as control
from tests.party.nodes import DATA, hold, refused, running, weekly

pytestmark = pytest.mark.turn(3)


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


def test_a_call_without_its_request_is_its_callers_fault(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data={"north": DATA["north"]}) as nodes:
            call = nodes.clients["north"].channel.stream_stream("/comine.v1.Control/Describe")()
            await call.done_writing()
            refusal = await refused(call.read())
            assert (refusal.code, refusal.party) == ("E402", "analyst"), refusal

    asyncio.run(test())


def test_another_coordinator_cannot_see_a_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id = await nodes.clients["north"].propose(weekly())
            rival = nodes.client(nodes.authority.issue("rival", "coordinator"))
            for call in (rival.start(job_id, []), rival.watch(job_id), rival.result(job_id)):
                assert "no such job of rival" in (await refused(call)).sentence
            log = [json.loads(line) for line in nodes.logs["north"].getvalue().splitlines()]
            levels = {line["call"]: line["level"] for line in log if line["event"] == "call refused"}
            assert levels == {"Start": "warning", "Watch": "info", "Result": "warning"}  # who watches only asks
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
