"""Runs that a person has approved in advance: that very job, of that coordinator, so often, so rarely, until then."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comine.command import run as command
from jobs.spec.job import JobSpec
from link.pki.authority import Authority
from party.policy.consent import Consent
from party.policy.standing import SLACK_S, Schedule
from party.state.store import Record
from protos.v1.control_pb2 import SUCCEEDED
from tests.errors import fails
from tests.looped import looped
from tests.party.nodes import Client, Nodes, audited, refused, running, weekly

pytestmark = pytest.mark.turn(3)

DAY = 86_400
NOW = time.time()
UNTIL = f"{dt.datetime.fromtimestamp(NOW + 60 * DAY, dt.UTC):%Y-%m-%d}"


def manual(folder: Path, more: str = "") -> Callable[[Authority], None]:
    """Has people decide at north."""

    def write(_: Authority) -> None:
        path = folder / "north.toml"
        path.write_text(path.read_text().replace('approve = "auto"\n', f'approve = "manual"\n{more}'))

    return write


def consent(nodes: Nodes, at: float = NOW) -> Consent:
    """North's, at a time by its clock."""
    found = nodes.nodes["north"].host.context.consent
    found.now = found.judge.now = lambda: at
    return found


def schedule(times: int = 3, every: str = "7d", until: str = UNTIL) -> Schedule:
    return Schedule(times, every, until, NOW)


async def granted(nodes: Nodes, terms: Schedule | None = None) -> Record:
    """A job that ann has approved at north, with runs of it in advance."""
    store = nodes.nodes["north"].store
    record = store.get(await nodes.clients["north"].propose(weekly(), os.urandom(16)))
    assert record is not None
    consent(nodes).approve(record, "ann", terms or schedule())
    return record


async def run(nodes: Nodes, after_days: float, spec: JobSpec | None = None, client: Client | None = None) -> str:
    """Proposes a run so long after the approval; by whom it is approved, empty where it awaits a person."""
    at = NOW + after_days * DAY
    consent(nodes, at)
    expiry = int(max(at, NOW)) + 600
    job_id, approval = await (client or nodes.clients["north"]).decide(spec or weekly(), os.urandom(16), expiry)
    record = nodes.nodes["north"].store.get(job_id)
    assert record is not None
    assert (approval is not None) == bool(record.approval)
    return record.decided_by


@looped
async def test_runs_on_schedule_are_approved_and_no_others(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        assert await run(nodes, 0) == ""
        await granted(nodes)
        assert await run(nodes, 6.9) == ""  # too early after the approval
        assert await run(nodes, 7) == "ann, in advance"
        assert await run(nodes, 7.1) == ""  # too early after the last run
        assert await run(nodes, 13.9) == ""
        assert await run(nodes, 15, weekly(name="another")) == ""
        assert await run(nodes, 15, weekly(itemsets={"min_support": "0.19"})) == ""
        other = nodes.client(nodes.authority.issue("other", "coordinator"))
        assert await run(nodes, 15, client=other) == ""
        renewed = nodes.client(nodes.authority.issue("analyst", "coordinator"))  # with another certificate
        assert await run(nodes, 15, client=renewed) == ""
        assert await run(nodes, 15) == "ann, in advance"
        assert await run(nodes, 29) == "ann, in advance"
        assert await run(nodes, 40) == ""  # too often
        events = [entry["event"] for entry in audited(tmp_path, "north")]
        assert events.count("standing-used") == 3
        assert events[events.index("standing-used") + 1] == "approved"


@looped
async def test_it_ends_and_a_clock_that_is_set_back_does_not_bring_it_back(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        await granted(nodes)
        assert await run(nodes, 62) == ""  # after the end
        assert await run(nodes, 30) == ""  # as the clock says now
        assert await run(nodes, 62 - SLACK_S / DAY / 2) == ""


@looped
async def test_a_clock_that_is_set_back_between_two_runs(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        await granted(nodes)
        assert await run(nodes, 20) == "ann, in advance"
        assert await run(nodes, 10) == ""
        assert await run(nodes, 27) == "ann, in advance"


@looped
async def test_revoked_it_is_worth_nothing_and_a_run_that_has_not_begun_does_not_begin(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        await granted(nodes, schedule(every="1s"))
        await asyncio.sleep(0)
        node = nodes.nodes["north"]
        consent(nodes, time.time() + 5)
        job_id, approvals = await nodes.agree(weekly())
        other_id, others = await nodes.agree(weekly(name="other"))
        assert node.store.get(other_id).decided_by == ""  # type: ignore[union-attr]
        (standing,) = node.store.standings()
        consent(nodes, time.time() + 10).revoke(standing.terms.id, "ben")
        assert (await refused(nodes.clients["north"].start(job_id, approvals))).code == "E300"
        with fails("E300", party="north"):
            consent(nodes).check_people(job_id, "baskets")
        assert await run(nodes, 8) == ""
        assert not others[0]


@looped
async def test_a_run_approved_in_advance_is_a_job_like_others_and_meets_the_policy(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path, 'max_jobs = 1\nmax_jobs_period = "30d"\n')) as nodes:
        await granted(nodes, schedule(every="1s"))
        consent(nodes, time.time() + 5)
        assert (await nodes.run(weekly()))[1]["north"].state == SUCCEEDED
        consent(nodes, time.time() + 10)
        again = await refused(nodes.clients["north"].propose(weekly(), os.urandom(16)))
        assert (again.code, "max_jobs" in again.sentence) == ("E300", True)


@looped
async def test_an_older_database_learns_of_runs_and_revocations_from_the_audit_log(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        await granted(nodes, schedule(times=1))
        state = tmp_path / "state" / "north"
        await nodes.nodes["north"].stop()
        shutil.copy(state / "node.db", tmp_path / "older.db")
        node = await nodes.restart("north")
        assert await run(nodes, 8) == "ann, in advance"
        (before,) = node.store.standings()
        await node.stop()
        for each in state.glob("node.db*"):
            each.unlink()
        shutil.copy(tmp_path / "older.db", state / "node.db")
        node = await nodes.restart("north")
        assert node.store.standings() == [before]
        assert await run(nodes, 20) == ""
        consent(nodes, NOW + 20 * DAY).revoke(before.terms.id, "ben")
        await node.stop()
        for each in state.glob("node.db*"):  # with no database at all
            each.unlink()
        node = await nodes.restart("north")
        (after,) = node.store.standings()
        assert (after.revoked, after.uses) == ("ben", before.uses)


@looped
async def test_a_database_that_somebody_wrote_into_approves_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
        await granted(nodes, schedule(times=1))
        nodes.nodes["north"].store.connection.execute("UPDATE standing SET times = 100, every_s = 1")
        assert await run(nodes, 8) == ""


@pytest.mark.parametrize(
    ("times", "every", "until"),
    [(0, "7d", UNTIL), (401, "7d", UNTIL), (1, "7d", "2020-01-01"), (1, "7d", "2999-01-01")],
)
def test_schedules_that_are_not_possible(times: int, every: str, until: str) -> None:
    with fails("E001"):
        Schedule(times, every, until, NOW)


@pytest.mark.parametrize(("every", "until"), [("weekly", UNTIL), ("7d", "soon")])
def test_words_that_are_no_schedule(every: str, until: str) -> None:
    with fails("E001"):
        Schedule(1, every, until, NOW)


def test_people_approve_list_and_revoke_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def comine(*words: str) -> Any:
        code = command(["party", *words])
        return code, capsys.readouterr().out

    async def propose() -> str:
        async with running(tmp_path, prepare=manual(tmp_path)) as nodes:
            return (await nodes.clients["north"].propose(weekly())).hex()

    job, path = asyncio.run(propose()), str(tmp_path / "north.toml")
    assert comine("approve", path, job, "--standing", "--times", "3")[0] == 2
    terms = ("--times", "3", "--every", "7d", "--until", UNTIL)
    assert comine("approve", path, job, *terms)[0] == 2
    assert comine("approve", path, job, "--standing", *terms, "--by", "ann", "--json")[0] == 0
    listed = json.loads(comine("inbox", path, "--json")[1])["standing"]
    shown = json.loads(comine("show", path, job, "--json")[1])["standing"]
    assert listed == shown
    assert [(each["state"], each["times"], each["used"], each["by"]) for each in listed] == [("stands", 3, 0, "ann")]
    assert "approved in advance by ann: 3 of 3 more runs" in " ".join(comine("show", path, job)[1].split())
    assert comine("revoke-approval", path, "ffff")[0] == 2
    code, out = comine("revoke-approval", path, job[:8], "--json")
    assert (code, json.loads(out)["standing"]["state"]) == (0, "revoked")
    assert comine("revoke-approval", path, job[:8])[0] == 2
