"""`comine audit`: showing a log and verifying it, as people and as programs see it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from jobs.schema import published
from tests.cli.conftest import Comine
from tests.crypto.protocols.replicated.deviating_world import AUTHORITY
from tests.jobs.audit.evidence_world import file_of
from tests.jobs.audit.world import PARTIES, WHOLE_JOB, World, weekly, with_result


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = with_result(tmp_path_factory.mktemp("world"), weekly())
    (world.folder / "ca.crt").write_bytes(world.authority.certificate_pem)
    for party in PARTIES:
        text = f'[party]\nname = "{party}"\nstate_dir = "{party}"\n[tls]\nca = "ca.crt"\n'
        (world.folder / f"{party}.toml").write_text(text)
    return world


def test_a_log_as_a_table(comine: Comine, world: World):
    ran = comine("audit", "show", world.log("north"))
    assert (ran.code, ran.err) == (0, "")
    heads, *rows = [line.split("\t") for line in ran.out.splitlines()]
    assert heads == ["entry", "time", "event", "job", "what"]
    assert [row[2] for row in rows] == [*WHOLE_JOB, "node-stopped"]
    assert comine("audit", "show", world.folder / "north.toml").out == ran.out
    assert comine("audit", "show", world.folder / "north").out == ran.out


def test_a_log_as_json(comine: Comine, world: World):
    ran = comine("audit", "show", world.log("north"), "--json")
    contents = json.loads(ran.out)
    jsonschema.validate(contents, json.loads(published("audit")))
    assert contents["schema"] == "comine.audit/1"
    assert [entry["seq"] for entry in contents["entries"]] == list(range(11))


def test_entries_can_be_chosen(comine: Comine, world: World):
    contents = json.loads(comine("audit", "show", world.log("north"), "--json").out)
    job = contents["entries"][2]["fields"]["job"]
    for asked in (job, job[:4]):
        chosen = json.loads(comine("audit", "show", world.log("north"), "--job", asked, "--json").out)
        assert [entry["seq"] for entry in chosen["entries"]] == list(range(2, 10))
    last = json.loads(comine("audit", "show", world.log("north"), "--job", job, "--last", 2, "--json").out)
    assert [entry["event"] for entry in last["entries"]] == ["released", "ended"]
    assert comine("audit", "show", world.log("north"), "--job", "xyz").code == 2
    assert json.loads(comine("audit", "show", world.log("north"), "--job", "0000", "--json").out)["entries"] == []


def test_all_good(comine: Comine, world: World):
    files = [world.folder / f"{party}.toml" for party in PARTIES]
    ran = comine("audit", "verify", *files, world.folder / "result")
    assert (ran.code, ran.out) == (0, "")
    assert "by the word of analyst alone: report.html, plan and software in result.json" in ran.err
    assert ran.err.endswith("all that was compared agrees\n")
    ran = comine("audit", "verify", *map(world.log, PARTIES), "--ca", world.folder / "ca.crt", "--json")
    assert ran.code == 0
    contents = json.loads(ran.out)
    jsonschema.validate(contents, json.loads(published("audit-verification")))
    assert contents["good"]
    assert [log["party"] for log in contents["logs"]] == list(PARTIES)
    assert contents["unheard"] == []


def test_who_was_not_heard_is_said(comine: Comine, world: World):
    ran = comine("audit", "verify", world.folder / "north.toml")
    assert ran.code == 0
    assert "not compared, since their logs were not given: east, south" in ran.err


def test_each_finding_is_a_line(comine: Comine, world: World, tmp_path: Path):
    copy = tmp_path / "audit.log"
    copy.write_bytes(world.log("north").read_bytes().replace(b'"by":"policy"', b'"by":"nobody"'))
    ran = comine("audit", "verify", copy, "--ca", world.folder / "ca.crt")
    assert ran.code == 40
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"{copy}, line 4 (entry 3): the line was changed")
    assert lines[1].startswith(f"{copy}.head: there is no head")
    assert ran.err.endswith(f"{len(lines)} findings\n")
    alone = tmp_path / "alone.log"  # without its head
    shutil.copy(world.log("north"), alone)
    assert comine("audit", "verify", alone, "--ca", world.folder / "ca.crt").err.endswith("\n1 finding\n")
    ran = comine("audit", "verify", copy, "--ca", world.folder / "ca.crt", "--json")
    assert ran.code == 40
    contents = json.loads(ran.out)
    jsonschema.validate(contents, json.loads(published("audit-verification")))
    assert not contents["good"]
    assert (contents["findings"][0]["line"], contents["findings"][0]["entry"]) == (4, 3)


def test_a_falsified_result_is_found(comine: Comine, world: World, tmp_path: Path):
    copy = Path(shutil.copytree(world.folder / "result", tmp_path / "result"))
    contents = json.loads((copy / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps(contents | {"job": "monthly", "disclosure": []}))
    ran = comine("audit", "verify", copy, *map(world.log, PARTIES), "--ca", world.folder / "ca.crt")
    assert ran.code == 40
    assert ran.out.splitlines() == [
        f"{copy / 'result.json'}: it was changed: its SHA-256 is not the one in manifest.json",
        f"{copy / 'result.json'}: its name of the job is monthly, and that of the proposal is weekly",
        f"{copy / 'result.json'}: its disclosure statement is not the one that follows from the proposal",
    ]


def test_a_changed_report_is_found(comine: Comine, world: World, tmp_path: Path):
    copy = Path(shutil.copytree(world.folder / "result", tmp_path / "result"))
    with (copy / "report.html").open("a") as file:
        file.write("<!-- -->")
    ran = comine("audit", "verify", copy, "--ca", world.folder / "ca.crt")
    what = "it was changed: its SHA-256 is not the one in manifest.json"
    assert (ran.code, ran.out) == (40, f"{copy / 'report.html'}: {what}\n")
    (copy / "result.json").unlink()
    assert comine("audit", "verify", copy, "--ca", world.folder / "ca.crt").code == 40


def test_a_shown_log_may_be_damaged(comine: Comine, world: World, tmp_path: Path):
    copy = tmp_path / "audit.log"
    copy.write_bytes(world.log("north").read_bytes() + b"\x1b[2Jtorn\n")
    ran = comine("audit", "show", copy)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert ran.out.splitlines()[-1].startswith("?\t\t\t\tno entry")


@pytest.mark.parametrize("command", ["show", "verify"])
def test_what_cannot_be_read(comine: Comine, world: World, tmp_path: Path, command: str):
    ran = comine("audit", command, tmp_path / "nothing")
    assert ran.code == 10
    assert "no audit log" in ran.err
    (tmp_path / "job.toml").write_text("[job]\n")
    ran = comine("audit", command, tmp_path / "job.toml")
    assert ran.code == 10
    assert "not a party's file" in ran.err


def test_an_authority_is_needed(comine: Comine, world: World, tmp_path: Path):
    ran = comine("audit", "verify", world.log("north"))
    assert ran.code == 2
    assert "--ca" in ran.err
    ran = comine("audit", "verify", world.log("north"), "--ca", tmp_path / "ca.crt")
    assert ran.code == 10


def test_a_result_is_not_a_log(comine: Comine, world: World):
    ran = comine("audit", "show", world.folder / "result")
    assert ran.code == 2
    assert "result folder" in ran.err


def test_evidence(comine: Comine, tmp_path: Path):
    ca, good, altered = tmp_path / "ca.crt", tmp_path / "evidence.json", tmp_path / "altered.json"
    ca.write_bytes(AUTHORITY.certificate_pem)
    good.write_text(file_of("two dealings"))
    jsonschema.validate(json.loads(good.read_text()), json.loads(published("evidence")))
    ran = comine("audit", "verify", good, "--ca", ca)
    assert ran.code == 0
    assert ran.out.startswith(f"{good}: convicts west, which said different things to ")
    altered.write_text(good.read_text().replace('"equivocation"', '"dealing"'))
    ran = comine("audit", "verify", good, altered, "--ca", ca, "--json")
    contents = json.loads(ran.out)
    assert ran.code == 40
    jsonschema.validate(contents, json.loads(published("audit-verification")))
    assert [each["convicts"] for each in contents["evidence"]] == [True, False]


@pytest.mark.parametrize("content", [b"", b"no certificate", AUTHORITY.issue("north").certificate_pem])
def test_nobody_is_found_to_have_lied_where_the_authority_is_none(comine: Comine, tmp_path: Path, content: bytes):
    evidence, wrong = tmp_path / "evidence.json", tmp_path / "wrong.crt"
    evidence.write_text(file_of("two dealings"))
    wrong.write_bytes(content)
    ran = comine("audit", "verify", evidence, "--ca", wrong)
    assert (ran.code, ran.out) == (10, "")
    assert f"{wrong} is not the certificate of an authority; give the authority's ca.crt" in ran.err
