"""`comine party inbox`, `show`, `approve` and `deny` beside a running node."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import time
from pathlib import Path

import pytest

import party.inbox_cli
import party.jobs.endings.tables
from comine.command import run
from party.config import PartyConfig
from party.state.store import Store
from protos.v1 import control_pb2 as control
from tests.integration.consent.people import command, manual, store_of, until
from tests.party.files import write_federation
from tests.party.nodes import DATA, running, weekly

pytestmark = pytest.mark.turn(3)

MANUAL = "min_support = 0.1"  # beside approve = "manual", which `manual` puts in


def test_show_tells_a_person_all_there_is_to_decide_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "north.toml")
    ids = dict[str, bytes]()

    async def test() -> None:
        async with running(tmp_path, policy=MANUAL, prepare=manual(tmp_path, "north")) as nodes:
            nonce, expiry = os.urandom(16), int(time.time()) + 600
            decisions = await nodes.all(lambda client: client.decide(weekly(), nonce, expiry))
            ids["first"] = decisions[0][0]
            assert await command("approve", file, ids["first"].hex(), "--by", "alice") == 0
            event = await until(nodes.clients["north"], ids["first"], control.APPROVED)
            approvals = [event.approval, decisions[1][1], decisions[2][1]]
            await nodes.all(lambda client: client.start(ids["first"], approvals))
            await nodes.ends(ids["first"])
            later = weekly(itemsets={"min_support": "0.15", "exclude": ["x*"]}, name="evil\x1b[2J")
            ids["second"] = await nodes.clients["north"].propose(later)

    asyncio.run(test())
    capsys.readouterr()

    def output(*arguments: str) -> str:
        assert run(["party", *arguments]) == 0
        return capsys.readouterr().out

    inbox = json.loads(output("inbox", file, "--json"))
    assert inbox["schema"] == "comine.inbox/1"
    assert [(job["job_id"], job["state"]) for job in inbox["jobs"]] == [(ids["second"].hex(), "awaiting approval")]
    everything = json.loads(output("inbox", file, "--all", "--json"))["jobs"]
    assert [job["state"] for job in everything] == ["awaiting approval", "succeeded"]
    assert everything[1]["decided_by"] == "alice"

    shown = json.loads(output("show", file, ids["second"].hex()[:6], "--json"))
    assert shown["schema"] == "comine.proposal/1"
    assert shown["job"]["itemsets"]["min_support"] == "0.15"
    assert any("x*" in line.get("detail", "") for line in shown["disclosure"])
    assert any("items that the job excludes" in sentence for sentence in shown["statement"])
    assert shown["policy"]["decision"] == "manual"
    assert {"rule": "min_support", "says": "allows", "allowed": "at least 0.1", "refusal": None} in (
        shown["policy"]["rules"]
    )
    assert shown["changes"]["since"] == ids["first"].hex()
    assert {change["key"] for change in shown["changes"]["changes"]} == {
        "job.name",
        "itemsets.min_support",
        "itemsets.exclude",
    }
    assert [(job["job_id"], job["state"], job["n_rows"]) for job in shown["earlier"]] == [
        (ids["first"].hex(), "succeeded", 60)
    ]
    assert shown["plan"]["schema"] == "comine.plan/1"

    brief = output("show", file, ids["second"].hex())
    changed = ("name: weekly → evil", "min_support: 20 % → 15 %", "exclude: x* added")
    for words in ("awaiting approval", "\nasked        by analyst: ", "\nworst case ", "\ncost ", "a person decides"):
        assert words in brief
    assert all(f"\n  {change}" in brief for change in changed)
    assert "What it discloses" not in brief
    text = output("show", file, ids["second"].hex(), "--detail")
    told = " ".join(text.split())
    assert all(sentence in told for sentence in shown["statement"])
    assert all(line["what"] in told for line in shown["disclosure"] if "label" in line)
    for words in ("awaiting approval", "What it discloses", "a person decides", "succeeded"):
        assert words in text
    assert re.search(r"^  trust\.compute +north, south$", text, re.MULTILINE)
    assert not {"itemsets.engine", "itemsets.cuts", "itemsets.quantiles", "trust.helper"} & set(text.split())
    assert f"comine party approve {file} {ids['second'].hex()[:12]}" in text
    assert "\x1b" not in text
    assert "\x1b" not in output("inbox", file)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "{file}", "123"], 2, "first 4 hexadecimal digits"),
        (["show", "{file}", "12xy"], 2, "first 4 hexadecimal digits"),
        (["approve", "{file}", "1234"], 2, "there is no job 1234"),
        (["approve", "{file}", "1234", "--by", "policy"], 2, "how a node signs by itself"),
        (["deny", "{file}", "1234", "--reason", ""], 2, "the reason must have 1 to 200"),
        (["deny", "{file}", "1234"], 2, "--reason"),
        (["inbox", "absent.toml"], 10, "does not exist"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(
    tmp_path: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.party.files import write_federation

    write_federation(tmp_path, dict(DATA))
    file = str(tmp_path / "north.toml")
    assert run(["party", *(argument.format(file=file) for argument in arguments)]) == code
    assert words in capsys.readouterr().err


def test_on_a_terminal_a_person_is_asked_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = list[bytes]()

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            ids.append(await nodes.clients["north"].propose(weekly()))

    asyncio.run(test())
    monkeypatch.setattr(party.inbox_cli, "is_terminal", lambda: True)
    asked, answers = list[str](), iter([False, True])
    monkeypatch.setattr("typer.confirm", lambda text, **_: (asked.append(text), next(answers))[1])
    file, job = str(tmp_path / "north.toml"), ids[0].hex()
    assert run(["party", "approve", file, job]) == 50
    told = capsys.readouterr().err
    assert "nothing was decided" in told
    assert told.startswith("asked        by analyst: frequent itemsets")
    assert "\nworst case " in told
    assert "\nChanges: none to compare with" in told
    assert run(["party", "approve", file, job, "--json"]) == 0
    decided = json.loads(capsys.readouterr().out)
    assert (decided["schema"], decided["jobs"][0]["state"]) == ("comine.inbox/1", "approved")
    assert asked == [f"approve job {job[:12]} of analyst on baskets?"] * 2
    assert run(["party", "deny", file, job, "--reason", "too late", "--yes"]) == 2
    assert len(asked) == 2


def test_an_altered_record_cannot_be_approved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:

    ids = list[bytes]()

    async def test() -> None:
        async with running(tmp_path, prepare=manual(tmp_path, "north")) as nodes:
            ids.append(await nodes.clients["north"].propose(weekly()))

    asyncio.run(test())
    with sqlite3.connect(tmp_path / "state" / "north" / "node.db") as database:
        (proposal,) = database.execute("SELECT proposal FROM jobs").fetchone()
        database.execute("UPDATE jobs SET proposal = ?", (proposal.replace(b'"0.2"', b'"0.1"'),))
    database.close()
    assert run(["party", "approve", str(tmp_path / "north.toml"), ids[0].hex()]) in (10, 20)
    assert PartyConfig.load(tmp_path / "north.toml").policy.approve == "manual"
    store = store_of(tmp_path, "north")
    assert (found := store.get(ids[0])) is not None
    assert found.state == control.AWAITING_APPROVAL
    store.close()


@pytest.mark.parametrize("command", [["inbox"], ["show", "ab"], ["approve", "ab"], ["deny", "ab", "--reason", "no"]])
def test_no_command_makes_a_lost_database_of_releases_anew(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_federation(tmp_path, DATA)
    state = tmp_path / "state" / "north"
    store = Store.open(state / "node.db")
    store.add_companions(["releases.db"])
    store.close()
    name, *more = command
    assert run(["party", name, str(tmp_path / "north.toml"), *more]) == 10
    assert "releases.db of north is gone or empty" in capsys.readouterr().err
    assert not (state / "releases.db").exists()
