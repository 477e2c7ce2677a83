"""Jobs at nodes with real certificates and ports: several at once, and such as end early."""

from __future__ import annotations

import asyncio
import gc
import re
import time
import weakref
from pathlib import Path
from typing import Any

import grpc
import pytest

import party.jobs.execution
import party.jobs.open_jobs
import party.jobs.session_host
from crypto.primitives.randomness import Randomness
from jobs.kinds.packed_itemsets import digest, unpack
from jobs.kinds.registry import kind_of
from jobs.results.release import verify
from jobs.run import PartyRun
from link.pki.trust import Trust
from link.session import Session
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.party.nodes import DATA, brief, hold, refused, running, weekly

pytestmark = pytest.mark.turn(3)


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
            specs = [brief(name=name) for name in ("first", "second", "third")]
            runs = await asyncio.gather(*(nodes.run(spec) for spec in specs))
            assert all(event.state == control.SUCCEEDED for _, ends in runs for event in ends.values())

    asyncio.run(test())


def test_a_coordinator_has_only_so_many_open_jobs(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_open_jobs = 2") as nodes:
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
            _, ends = await nodes.run(brief())
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
            _, ends = await nodes.run(brief())
            for event in ends.values():
                assert (event.state, event.error_code) == (control.FAILED, "E101")
                assert "east cannot take part in this job with its data" in event.error_message
                assert "east.dat" not in event.error_message
            assert "east.dat" in nodes.logs["east"].getvalue()
            (tmp_path / "east.dat").write_text("item0\n")
            _, ends = await nodes.run(brief())
            assert ends["east"].state == control.SUCCEEDED

    asyncio.run(test())


def test_an_unforeseen_fault_is_not_described_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*args: Any, **kwargs: Any) -> PartyRun:
        raise KeyError("milk")

    async def test() -> None:
        async with running(tmp_path) as nodes:
            monkeypatch.setattr(party.jobs.execution, "run_party", faulty)
            _, ends = await nodes.run(brief())
            for event in ends.values():
                assert (event.state, event.error_code) == (control.FAILED, "E700")
                assert "milk" not in event.error_message
            logs = "".join(log.getvalue() for log in nodes.logs.values())
            assert '"KeyError"' in logs
            assert "milk" not in logs

    asyncio.run(test())


def test_too_little_memory_is_no_fault_of_comine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(kind_of(brief()))
    run = kind.run

    async def starved(self: Any, session: Session, *rest: Any) -> Any:
        if session.me == "north":
            raise MemoryError
        return await run(self, session, *rest)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            monkeypatch.setattr(kind, "run", starved)
            _, ends = await nodes.run(brief())
            for event in ends.values():
                assert (event.state, event.error_code, event.error_party) == (control.FAILED, "E103", "north")
                assert "north lacks disk space or memory for this job" in event.error_message

    asyncio.run(test())


def test_a_job_leaves_nothing_in_the_state_folder_but_what_the_reference_names(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference-party-toml.md").read_text()
    rows = re.findall(r"^\|([^|]+)\|", page.partition("## The state folder")[2].partition("Files are")[0], re.MULTILINE)
    named = {name.partition("/")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}

    async def test() -> None:
        async with running(tmp_path) as nodes:
            _, ends = await nodes.run(brief(recipients=["all"]))
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
            _, ends = await nodes.run(brief())
            assert {event.state for event in ends.values()} == {control.SUCCEEDED}
            assert len(drawn) >= 3  # of each party the session's, and those of what its journal seals

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
