"""People who end jobs at their own node, whether or not it runs; what they see of a job, and what others learn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from comine.command import run
from coordinator.jobs.runner import run_job
from party.jobs.queue_note import noted
from protos.v1 import control_pb2 as control
from tests.errors import fails
from tests.integration.consent.people import command, until
from tests.party.nodes import audited, hold, refused, running, weekly

WHY = ("--by", "Nora North", "--reason", "the machine is needed")
SENTENCE = "Nora North at north cancelled the job: the machine is needed"


def test_a_job_that_runs_is_shown_and_ended_for_good_and_the_others_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, note = str(tmp_path / "north.toml"), tmp_path / "state" / "north" / "queue.json"

    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["north"])
            job_id, approvals = await nodes.agree(weekly(deadline="300s"))
            await nodes.all(lambda client: client.start(job_id, approvals))
            async with asyncio.timeout(60):
                while not any(each["running"] for each in noted(note).values()):  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)
            assert await command("status", file, "--json") == 0
            (shown,) = json.loads(capsys.readouterr().out)["jobs"]
            assert (shown["state"], shown["place"]) == ("running", 0)
            progress = shown["running"]
            assert list(progress) == ["step", "done", "total", "since", "deadline", "peers"]
            assert (progress["step"], list(progress["peers"])) == (None, ["south", "east"])
            assert progress["since"] < progress["deadline"]
            assert await command("status", file) == 0
            assert f"{job_id.hex()[:12]} runs since {progress['since']}" in capsys.readouterr().out
            assert await command("cancel", file, job_id.hex()[:8], *WHY, "--json") == 0
            told = json.loads(capsys.readouterr().out)
            assert (told["schema"], told["by"]) == ("comine.cancelled/1", "Nora North")
            assert (told["job"]["state"], told["job"]["job_id"]) == ("cancelled", job_id.hex())
            for name, event in (await nodes.ends(job_id)).items():
                found = (event.state, event.error_code, event.error_party, event.error_message)
                assert found == (control.CANCELLED, "E501", "north", SENTENCE), name
            assert await command("cancel", file, job_id.hex(), *WHY) == 2
            for name, client in nodes.clients.items():
                assert (await refused(client.start(job_id, approvals, 2))).code == (
                    "E501" if name == "north" else "E401"
                )

    asyncio.run(test())
    written = [(entry["event"], entry["fields"]) for entry in audited(tmp_path, "north")]
    (cancelled,) = [fields for event, fields in written if event == "owner-cancelled"]
    assert (cancelled["by"], cancelled["reason"]) == ("Nora North", "the machine is needed")
    assert [fields["error_code"] for event, fields in written if event == "ended"] == ["E501"]
    log, ca = tmp_path / "state" / "north" / "audit.log", tmp_path / "pki" / "ca.crt"
    assert run(["audit", "verify", str(log), "--ca", str(ca)]) == 0


@pytest.mark.parametrize("runs", [True, False])
def test_an_approved_job_is_ended_before_it_begins(tmp_path: Path, runs: bool) -> None:
    """Beside the node, which then ends the wait for a turn, and without it, before its next start."""

    async def test() -> None:
        async with running(tmp_path, party="max_running = 1") as nodes:
            north, file = nodes.clients["north"], str(tmp_path / "north.toml")
            job_id, approvals = await nodes.agree(weekly())
            if runs:
                other = await north.propose(weekly(), bytes([9]) * 16)
                turns = [north.stub.Queue(control.QueueRequest(job_id=each, wait=True)) for each in (other, job_id)]
                assert [(await turn.read()).place for turn in turns] == [0, 1]
                assert await command("cancel", file, job_id.hex(), *WHY) == 0
                assert (await refused(turns[1].read())).code == "E501"
            else:
                await nodes.nodes["north"].stop()
                assert await command("cancel", file, job_id.hex(), *WHY) == 0
                await nodes.restart("north")
            event = await until(north, job_id, control.CANCELLED)
            assert (event.error_code, event.error_message) == ("E501", SENTENCE)
            assert (await refused(north.start(job_id, approvals))).code == "E501"

    asyncio.run(test())


def test_a_coordinator_is_told_who_has_ended_its_job(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["east"])
            me, host = nodes.authority.issue("analyst", "coordinator"), nodes.nodes["north"].host
            job = asyncio.create_task(run_job(weekly(deadline="100s"), me, nodes.addresses))
            async with asyncio.timeout(60):
                while not host.running:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.02)
            (job_id,) = [each.id for each in host.jobs]
            assert await command("cancel", str(tmp_path / "north.toml"), job_id.hex(), *WHY) == 0
            with fails("E501") as caught:
                await job
            assert (caught.value.message, caught.value.party) == (SENTENCE, "north")

    asyncio.run(test())


def test_a_job_whose_node_died_is_ended_when_the_node_is_back_though_its_database_is_older(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        async with running(tmp_path) as nodes:
            hold(nodes.nodes["north"])
            job_id, approvals = await nodes.agree(weekly())
            await nodes.all(lambda client: client.start(job_id, approvals))
            await nodes.crash("north")
            file, state = str(tmp_path / "north.toml"), tmp_path / "state" / "north"
            before = {each: each.read_bytes() for each in state.glob("node.db*")}
            assert await command("cancel", file, job_id.hex(), *WHY) == 0
            assert "ends it when it starts" in capsys.readouterr().out
            for path, contents in before.items():
                path.write_bytes(contents)
            await nodes.restart("north")
            north = nodes.clients["north"]
            event = (await north.watch(job_id))[-1]
            assert (event.state, event.error_code, event.error_message) == (control.CANCELLED, "E501", SENTENCE)
            assert (await refused(north.start(job_id, approvals, 2))).code == "E501"

    asyncio.run(test())
