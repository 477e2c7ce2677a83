"""People who decide on jobs at their nodes, and what outlives a restart of a node."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

import party.inbox_cli
import party.jobs.endings.tables
from jobs.consent import read_approval
from jobs.kinds.packed_itemsets import digest, unpack
from jobs.results.release import verify
from link.pki.trust import Trust
from mining.reference.pooled import brute_force
from protos.v1 import control_pb2 as control
from tests.integration.consent.people import command, manual, store_of, until
from tests.integration.faults.test_guilty import shift
from tests.jobs.audit.world import WHOLE_JOB
from tests.party.nodes import DATA, audited, brief, crash, expire, hold, refused, running


def test_a_job_waits_for_people_and_then_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north", "south")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 86_400
            decided = await nodes.all(lambda client: client.decide(brief(), nonce, expiry))
            job_id = decided[0][0]
            assert [approval is None for _, approval in decided] == [True, True, False]
            early = await refused(nodes.clients["north"].start(job_id, nodes.forged(job_id, brief())))
            assert "nobody at north has approved this job yet" in early.sentence
            watching = [asyncio.create_task(until(nodes.clients[n], job_id, control.APPROVED)) for n in DATA]
            await until(nodes.clients["north"], job_id, control.AWAITING_APPROVAL)
            for name in ("north", "south"):
                file = str(tmp_path / f"{name}.toml")
                by = ("--by", "alice") if name == "north" else ()
                assert await command("approve", file, job_id.hex()[:8], *by) == 0
            events = await asyncio.gather(*watching)
            approvals = [event.approval for event in events]
            trust = nodes.clients["north"].identity.trust
            signed = [read_approval(approval, trust, name) for approval, name in zip(approvals, DATA, strict=True)]
            assert [(approval.by, approval.job_id) for approval in signed] == [
                ("alice", job_id),
                ("operator", job_id),  # and not whoever is logged in at the node's machine
                ("policy", job_id),
            ]
            await nodes.all(lambda client: client.start(job_id, approvals))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())
    assert "approved by alice" in capsys.readouterr().out
    events = [entry["event"] for entry in audited(tmp_path, "north")]
    assert events == [*WHOLE_JOB, "node-stopped"]


def test_a_person_can_deny_with_a_reason_that_the_coordinator_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north = nodes.clients["north"]
            job_id = await north.propose(brief())
            file = str(tmp_path / "north.toml")
            watching = asyncio.create_task(until(north, job_id, control.DENIED))
            assert (
                await command("deny", file, job_id.hex(), "--by", "bob", "--reason", "see https://north.example/sale")
                == 0
            )
            event = await watching
            assert (event.error_code, event.error_party) == ("E300", "north")
            assert event.error_message == "bob at north denied the job: see https://north.example/sale"
            for verb in (["approve", file, job_id.hex()], ["deny", file, job_id.hex(), "--reason", "again"]):
                assert await command(*verb) == 2  # decided once and for all
            assert (await refused(north.start(job_id, nodes.forged(job_id, brief())))).code == "E401"

    asyncio.run(test())
    assert [e["fields"].get("reason") for e in audited(tmp_path, "north") if e["event"] == "refused"] == [
        "see https://north.example/sale"
    ]


def test_a_decision_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north = nodes.clients["north"]
            job_id = await north.propose(brief())
            expire(nodes.nodes["north"], job_id)
            await until(north, job_id, control.EXPIRED)
            assert await command("approve", str(tmp_path / "north.toml"), job_id.hex()) == 2
            shift(nodes, "north", -600)  # its time passes where no node is there to see it
            second = await north.propose(brief(), os.urandom(16), int(time.time()) - 1)
            await nodes.nodes["north"].stop()
            assert await command("approve", str(tmp_path / "north.toml"), second.hex()) == 60
            await nodes.restart("north")
            event = await until(north, second, control.EXPIRED)
            assert event.error_code == "E600"

    asyncio.run(test())


def test_what_the_policy_refuses_by_now_cannot_be_approved_or_started(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            north, file = nodes.clients["north"], tmp_path / "north.toml"
            first, second = [await north.propose(brief(), bytes([i]) * 16) for i in (1, 2)]
            assert await command("approve", str(file), first.hex()) == 0
            await until(north, first, control.APPROVED)
            await nodes.nodes["north"].stop()
            file.write_text(file.read_text().replace('approve = "manual"', 'approve = "manual"\nmin_support = 0.5'))
            assert await command("approve", str(file), second.hex()) == 30
            await nodes.restart("north")
            refusal = await refused(north.start(first, nodes.forged(first, brief())))
            assert (refusal.code, "rule min_support" in refusal.sentence) == ("E300", True)

    asyncio.run(test())


def test_a_decision_at_the_last_moment_is_not_overrun(tmp_path: Path) -> None:
    """A person decides while the node writes down that the job was cancelled."""

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            host, north = nodes.nodes["north"].host, nodes.clients["north"]
            for verb, state in (("approve", control.CANCELLED), ("deny", control.DENIED)):
                job_id = await north.propose(brief(), os.urandom(16))
                record, more = host.context.audit.record, ["--reason", "no"] if verb == "deny" else []

                async def recorded(
                    *events: Any, v: str = verb, j: bytes = job_id, m: Any = more, r: Any = record
                ) -> None:
                    await r(*events)
                    assert await command(v, str(tmp_path / "north.toml"), j.hex(), *m) == 0

                host.context.audit.record = recorded  # type: ignore[method-assign]
                await north.cancel(job_id)
                host.context.audit.record = record  # type: ignore[method-assign]
                assert (await north.watch(job_id))[-1].state == state
                store = store_of(tmp_path, "north")
                assert (found := store.get(job_id)) is not None
                assert found.state == state
                store.close()

    asyncio.run(test())


def test_awaiting_and_approved_jobs_outlive_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 600
            decisions = await nodes.all(lambda client: client.decide(brief(), nonce, expiry))
            job_id, north = decisions[0][0], nodes.clients["north"]
            await nodes.nodes["north"].stop()
            assert await command("approve", str(tmp_path / "north.toml"), job_id.hex()) == 0
            await nodes.restart("north")
            await nodes.nodes["south"].stop()
            await nodes.restart("south")
            approved = (await until(north, job_id, control.APPROVED)).approval
            assert (await until(nodes.clients["south"], job_id, control.APPROVED)).approval == decisions[1][1]
            approvals = [approved, decisions[1][1], decisions[2][1]]
            await nodes.all(lambda client: client.start(job_id, approvals))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())


def test_a_job_that_ran_while_its_node_died_has_failed_and_is_never_started_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["south"])
            expiry = int(time.time()) + 600
            job_id, approvals = await nodes.agree(brief(), expiry)
            await nodes.all(lambda client: client.start(job_id, approvals))
            await crash(nodes.nodes["south"])
            await nodes.restart("south")
            south = nodes.clients["south"]
            event = (await south.watch(job_id))[-1]
            assert (event.state, event.error_code, event.error_party) == (control.FAILED, "E200", "south")
            assert "the node of south was restarted while the job ran" in event.error_message
            assert (await refused(south.start(job_id, approvals))).code == "E401"

    asyncio.run(test())


def test_proposals_and_starts_are_replayed_in_vain_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            north = nodes.clients["north"]
            signed = north.signed(brief())
            job_id = (await north.stub.Propose(signed)).job_id
            bad = north.signed(brief(dataset="sales"))
            assert (await refused(north.stub.Propose(bad))).code == "E100"
            run_id, ends = await nodes.run(brief())
            assert ends["north"].state == control.SUCCEEDED
            for _ in range(2):
                for again in (signed, bad):
                    assert (await refused(north.stub.Propose(again))).code == "E401"
                assert (await refused(north.start(run_id, nodes.forged(run_id, brief())))).code == "E401"
                await nodes.nodes["north"].stop()
                await nodes.restart("north")
            assert (await until(north, job_id, control.APPROVED)).HasField("approval")

    asyncio.run(test())


def test_a_released_result_outlives_the_node_and_is_gone_after_its_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = brute_force((row for rows in DATA.values() for row in rows), 36, 1)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            job_id, ends = await nodes.run(brief())
            (file,) = (tmp_path / "state" / "north" / "released").iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            await nodes.nodes["north"].stop()
            await nodes.restart("north")
            north = nodes.clients["north"]
            (event,) = await north.watch(job_id)
            assert (event.state, event.bytes_sent) == (control.SUCCEEDED, ends["north"].bytes_sent)
            header, table = await north.result(job_id)
            trust = Trust(nodes.authority.certificate_pem)
            release = verify(header, trust=trust, party="north", job_id=job_id)
            assert digest(table) == release.result_digest
            assert {frozenset(items): count for items, count in unpack(table).itemsets} == expected
            await nodes.nodes["north"].stop()
            monkeypatch.setattr(party.jobs.endings.tables, "KEEP_S", 0.0)
            await nodes.restart("north")
            assert not file.exists()
            assert "kept the result of this job for an hour" in (await refused(north.result(job_id))).sentence

    asyncio.run(test())
