"""Jobs that several people of a party have to approve, and what others learn of it before they have."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from comine.command import run
from jobs.consent import read_approval
from protos.v1 import control_pb2 as control
from tests.integration.consent.people import command, until
from tests.party.nodes import audited, refused, running, weekly

TWO = 'approve = "manual"\napprovals = 2\n'


def two(folder: Path) -> Any:
    """What lets two people decide together at north, of nodes that are prepared."""

    def change(_: Any) -> None:
        file = folder / "north.toml"
        file.write_text(file.read_text().replace('approve = "auto"\n', TWO))

    return change


def test_a_job_starts_only_when_as_many_different_people_have_approved_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "north.toml")

    async def test() -> None:
        async with running(tmp_path, prepare=two(tmp_path)) as nodes:
            north, spec = nodes.clients["north"], weekly()
            job_id = await north.propose(spec)
            events: list[control.JobEvent] = []

            async def watch() -> None:
                async for event in north.stub.Watch(control.WatchRequest(job_id=job_id)):
                    events.append(event)
                    if event.state == control.APPROVED:
                        return

            watching = asyncio.create_task(watch())
            assert await command("approve", file, job_id.hex(), "--by", "Anna") == 0
            assert "1 of 2 approved, by Anna" in capsys.readouterr().out
            assert await command("approve", file, job_id.hex(), "--by", " aNNA ") == 2
            assert await command("inbox", file, "--json") == 0
            (waits,) = json.loads(capsys.readouterr().out)["jobs"]
            assert (waits["state"], waits["approvals"]) == (
                "awaiting approval",
                {"needed": 2, "by": ["Anna"], "runs": None},
            )
            assert await command("show", file, job_id.hex()) == 0
            assert "1 of 2 approved, by Anna" in capsys.readouterr().out
            early = await refused(north.start(job_id, nodes.forged(job_id, spec)))
            assert "nobody at north has approved this job yet" in early.sentence  # of one who has, nobody is told
            await nodes.nodes["north"].stop()  # whose tables are made anew out of its log
            for path in (tmp_path / "state" / "north").glob("node.db*"):
                path.unlink()
            await nodes.restart("north")
            await asyncio.gather(watching, return_exceptions=True)
            assert await command("approve", file, job_id.hex(), "--by", "Bert") == 0
            approval = (await until(north, job_id, control.APPROVED)).approval
            signed = read_approval(approval, north.identity.trust, "north")
            assert signed.by == "Anna, Bert"
            assert {event.state for event in events} == {control.AWAITING_APPROVAL}

            denied = await north.propose(spec, os.urandom(16))
            assert await command("approve", file, denied.hex(), "--by", "Anna") == 0
            assert await command("deny", file, denied.hex(), "--by", "Bert", "--reason", "no") == 0
            assert (await until(north, denied, control.DENIED)).error_message == "Bert at north denied the job: no"

    asyncio.run(test())
    found = [(e["event"], e["fields"]["by"]) for e in audited(tmp_path, "north") if "appro" in e["event"]]
    ca = str(tmp_path / "pki" / "ca.crt")
    assert run(["audit", "verify", str(tmp_path / "state" / "north" / "audit.log"), "--ca", ca]) == 0
    given = "approval-given"
    assert found == [(given, "Anna"), (given, "Bert"), ("approved", "Anna, Bert"), (given, "Anna")]


def test_runs_are_approved_in_advance_by_as_many_and_who_asks_for_more_people_stops_what_fewer_have_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, day = tmp_path / "north.toml", f"{dt.datetime.now(dt.UTC) + dt.timedelta(days=9):%Y-%m-%d}"
    ahead = ("--standing", "--times", "2", "--every", "1s", "--until", day)

    async def test() -> None:
        async with running(tmp_path, prepare=two(tmp_path)) as nodes:
            north, spec, expiry = nodes.clients["north"], weekly(), int(time.time()) + 600
            job_id = await north.propose(spec)
            assert await command("approve", str(file), job_id.hex(), "--by", "Anna", *ahead) == 0
            assert await command("show", str(file), job_id.hex()) == 0
            assert f"by Anna, with 2 more runs, every 1s until {day}" in " ".join(capsys.readouterr().out.split())
            assert await command("approve", str(file), job_id.hex(), "--by", "Bert") == 2  # who agrees to less
            assert await command("approve", str(file), job_id.hex(), "--by", "Bert", *ahead) == 0
            await until(north, job_id, control.APPROVED)
            nodes.nodes["north"].host.context.consent.now = lambda: time.time() + 2  # so the run is not too soon
            run, approval = await north.decide(spec, os.urandom(16), expiry)
            assert approval is not None
            assert read_approval(approval, north.identity.trust, "north").by == "Anna, Bert, in advance"

            await nodes.nodes["north"].stop()
            file.write_text(file.read_text().replace("approvals = 2", "approvals = 3"))
            await nodes.restart("north")
            nodes.nodes["north"].host.context.consent.now = lambda: time.time() + 4
            assert (await north.decide(spec, os.urandom(16), expiry))[1] is None
            for each in (job_id, run):
                refusal = await refused(north.start(each, nodes.forged(each, spec)))
                assert (refusal.code, "rule approvals" in refusal.sentence) == ("E300", True)

    asyncio.run(test())
