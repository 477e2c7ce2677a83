"""`comine job …` and `comine doctor` against scripted nodes that live in a thread of their own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from coordinator.jobs.records.store import JobFolder
from jobs.kinds.packed_itemsets import digest, pack
from jobs.schema import generate
from link.errors import PolicyDenied
from link.pki.authority import write_identity
from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets
from mining.rules.association import association_rules
from protos.v1 import control_pb2 as control
from tests.cli.conftest import Comine
from tests.coordinator.nodes import Script, World, world
from tests.jobs.results.made import uncounted

pytestmark = pytest.mark.turn(3)

JOB = '[job]\nname = "w"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "d"\n[itemsets]\nmin_support = 2\n'
LISTED = "import sys, comine.command as c; code = c.run(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
HEAVY = {"pandas", "scipy", "sklearn", "duckdb", "polars", "party", "ldp"}
RUN = ("job", "run", "job.toml", "--federation", "federation.toml", "--out", "out")


@contextmanager
def nodes(folder: Path, **changes: dict[str, Any]) -> Iterator[World]:
    """Scripted nodes, and the files by which a coordinator in `folder` knows them."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with ExitStack() as stack:
        stack.callback(loop.close)
        stack.callback(thread.join)
        stack.callback(loop.call_soon_threadsafe, loop.stop)
        entered = world(**changes)
        made = asyncio.run_coroutine_threadsafe(entered.__aenter__(), loop).result()
        stack.callback(lambda: asyncio.run_coroutine_threadsafe(entered.__aexit__(None, None, None), loop).result())
        made.authority.write(folder)
        write_identity(made.coordinator, folder)
        members = "".join(f'[[party]]\nname = "{n}"\naddress = "{a}"\n' for n, a in made.addresses.items())
        (folder / "federation.toml").write_text(
            '[federation]\nname = "f"\n[coordinator]\nca = "ca.crt"\ncertificate = "hub.crt"\nkey = "hub.key"\n'
            + members
        )
        (folder / "job.toml").write_text(JOB)
        yield made


def test_a_job_and_a_doctor_that_finds_all_well(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        assert comine("doctor", "--federation", "federation.toml").code == 0
        ran = comine(*RUN)
        assert (ran.code, ran.out) == (0, "")
        assert (tmp_path / "out/itemsets.csv").read_text().splitlines()[1] == '"[""bread""]",1,5,0.5555555555555556'
        assert json.loads(comine(*RUN, "--json").out)["n_rows"] == 9


def test_the_parties_are_asked_before_what_only_the_result_needs_is_loaded(tmp_path: Path) -> None:
    """Their work, and the wait for it, begin with the first call; what is loaded before adds to every job."""
    with nodes(tmp_path, north={"refuse": {"Start": PolicyDenied("north forbids it", party="north")}}):
        command = [sys.executable, "-c", LISTED, *RUN]
        ran = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (30, "comine: north forbids it (E300; comine explain E300)\n")
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert {"grpc", "pydantic"} <= loaded
    assert not {"jinja2", "duckdb", "rich", "party"} & loaded


def test_a_job_over_rows_takes_no_library_that_its_coordinator_does_not_need(tmp_path: Path) -> None:
    """From the job file to the result folder; `tests/repository/test_imports.py` has the modules of comine itself."""
    table = pack(frequent_itemsets(Transactions.from_rows([["bread", "milk"]] * 9), 2))
    changes = {"release": lambda r: setattr(r, "result_digest", digest(table)), "table": table}
    with nodes(tmp_path, north=changes, south=changes):
        rules = JOB.replace('"itemsets"', '"rules"') + "[rules]\nmin_confidence = 1.0\n"
        (tmp_path / "job.toml").write_text(rules)
        command = [sys.executable, "-c", LISTED, *RUN]
        ran = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert "pyarrow" in loaded
    assert not HEAVY & loaded


def test_a_result_without_supports_is_shown_as_what_it_is(comine: Comine, tmp_path: Path) -> None:
    pair = frequent_itemsets(Transactions.from_rows([["bread", "milk"]] * 9), 2)
    rules = association_rules(pair, Decimal(1))
    hidden = replace(rules, itemsets=uncounted(pair))
    table = pack(hidden.itemsets, hidden)
    changes = {"release": lambda r: setattr(r, "result_digest", digest(table)), "table": table}
    with nodes(tmp_path, north=changes, south=changes):
        more = '\ndisclose = "frequent"\n[rules]\nmin_confidence = 1.0\n'
        (tmp_path / "job.toml").write_text(JOB.rstrip().replace('"itemsets"', '"rules"') + more)
        assert comine(*RUN).code == 0
    ran = comine("job", "result", "w")
    assert ran.code == 0
    assert "3 frequent itemsets and 2 rules, supports not disclosed, of 9 transactions of 2 parties" in ran.err
    assert ran.out.splitlines()[1] == '"[""bread""]","[""milk""]",,,,,,,,'
    contents = json.loads(comine("job", "result", "w", "--json").out)
    jsonschema.validate(contents, json.loads(generate("result")))
    assert contents["counted"] is False
    assert {row["count"] for row in contents["itemsets"]} == {None}
    assert (tmp_path / "out/itemsets.csv").read_text().splitlines()[1] == '"[""bread""]",1,,'


def test_a_refusal_exits_30_and_leaves_nothing(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"refuse": {"Propose": PolicyDenied("south forbids it", party="south")}}):
        ran = comine(*RUN)
    assert (ran.code, ran.err) == (30, "comine: south forbids it (E300; comine explain E300)\n")
    assert not (tmp_path / "out").exists()


def test_failed_jobs_exit_by_their_cause(comine: Comine, tmp_path: Path) -> None:
    event = control.JobEvent(
        state=control.FAILED, error_code="E600", error_message="too late\x1b[31m\nreally", error_party="north"
    )
    with nodes(tmp_path, north={"events": [event]}, south={"events": [event]}):
        ran = comine(*RUN)
    assert ran.code == 60
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


def test_nobody_there_exits_20(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        pass
    ran = comine(*RUN)
    assert ran.code == 20
    assert "nothing listens there" in ran.err
    ran = comine("doctor", "--federation", "federation.toml", "--json")
    assert ran.code == 20
    assert [party["reachable"] for party in json.loads(ran.out)["parties"]] == [False, False]


def test_ctrl_c_exits_50_and_tells_the_parties(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, north={"hold": True}, south={"hold": True}) as made:

        def interrupt() -> None:
            while not all(node.watched.is_set() for node in made.nodes.values()):
                threading.Event().wait(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        ran = comine(*RUN)
        thread.join()
        assert ran.code == 50
        assert all("Cancel" in node.calls for node in made.nodes.values())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "job.toml").write_text(JOB.replace("south", "west")), "'west'"),
        (lambda f: (f / "federation.toml").unlink(), "give --federation FILE, or set COMINE_FEDERATION"),
        (lambda f: (f / "hub.key").chmod(0o644), "chmod 600"),
        (lambda f: (f / "out").write_text("a file"), "is a file"),
    ],
)
def test_wrong_files_exit_10(comine: Comine, tmp_path: Path, spoil: Any, words: str) -> None:
    with nodes(tmp_path):
        spoil(tmp_path)
        ran = comine(*RUN)
    assert ran.code == 10
    assert words in ran.err


def test_a_partys_certificate_is_none_for_a_coordinator(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path) as made:
        write_identity(made.nodes["north"].identity, tmp_path)
        file = tmp_path / "federation.toml"
        file.write_text(file.read_text().replace("hub.", "north."))
        ran = comine(*RUN)
    assert ran.code == 10
    assert "--role coordinator" in ran.err


# -- jobs in the background -------------------------------------------------------------------------------------------
def submitted(comine: Comine, *more: str) -> str:
    ran = comine("job", "submit", "job.toml", *more)
    assert ran.code == 0, ran.err
    assert re.fullmatch(r"[0-9a-f]{64}\n", ran.out)
    return ran.out.strip()


def person(made: World, name: str, act: Callable[[Script], None]) -> None:
    """What a person at a node does, in the node's thread."""
    assert made.loop is not None
    made.loop.call_soon_threadsafe(act, made.nodes[name])


def proceed(node: Script) -> None:
    """Lets a job that is held run on."""
    node.go.set()


def soon(until: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Does something in a thread of its own once a condition holds."""

    def wait() -> None:
        while not until():
            threading.Event().wait(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def checked(text: str, schema: str) -> Any:
    """JSON that meets its published schema."""
    contents = json.loads(text)
    jsonschema.validate(contents, json.loads(generate(schema)))
    return contents


def test_a_submitted_job_from_its_proposal_to_its_result(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}) as made:
        job_id = submitted(comine)
        status = checked(comine("job", "status", job_id[:8], "--json").out, "job-status")
        assert (status["state"], status["waits_for"], status["driven"]) == ("awaiting-approval", ["south"], True)
        assert status["parties"]["south"]["waits_for"] == "a person's decision"
        assert status["parties"]["north"]["approved_by"] == "ann"
        assert "south" in comine("job", "status", "w").out
        early = comine("job", "result", job_id)
        assert early.code == 10
        assert "awaiting-approval" in early.err
        person(made, "south", Script.approve)
        ran = comine("job", "watch", job_id[:6])
        assert (ran.code, ran.out) == (0, "")
        assert f"comine job result {job_id[:12]}" in ran.err
    # the nodes are gone: all that follows comes from the coordinator's folder
    assert checked(comine("job", "result", job_id, "--json").out, "result")["n_rows"] == 9
    assert comine("job", "result", "w", "--out", "out").code == 0
    assert (tmp_path / "out/itemsets.csv").read_text().splitlines()[1] == '"[""bread""]",1,5,0.5555555555555556'
    page = Path(comine("job", "report", job_id).out.strip())
    assert page == tmp_path / "jobs" / job_id / "report.html"
    assert page.read_text().lower().startswith("<!doctype html>")
    assert comine("job", "report", job_id, "--out", "page.html").out == f"{tmp_path / 'page.html'}\n"
    listed = comine("job", "report", job_id, "--csv", "tables").out.splitlines()
    assert listed == [str(page), str(tmp_path / "tables/itemsets.readable.csv")]
    assert (tmp_path / "tables/itemsets.readable.csv").read_text().splitlines()[:2] == [
        "itemset,length,count,support,itemset_json",
        'bread,1,5,0.5555555555555556,"[""bread""]"',
    ]
    (line,) = checked(comine("job", "list", "--json").out, "jobs")["jobs"]
    assert (line["job_id"], line["state"], line["driven"]) == (job_id, "succeeded", False)
    assert job_id[:12] in comine("job", "list").out


def test_the_driver_writes_the_result_folder(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        job_id = submitted(comine, "--out", "out")
        ran = comine("job", "watch", job_id, "--json")
    assert checked(ran.out, "job-status")["out"] == str(tmp_path / "out")
    assert (tmp_path / "out/result.json").exists()


def test_a_submission_as_json_and_its_cancellation(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}):
        contents = checked(comine("job", "submit", "job.toml", "--json").out, "job-status")
        assert contents["state"] == "awaiting-approval"
        ran = comine("job", "cancel", contents["job_id"], "--reason", "no need", "--json")
        assert ran.code == 0, ran.err
        assert checked(ran.out, "job-status")["error"]["message"].endswith(": no need")
        assert comine("job", "cancel", "w").code == 0  # once more does no harm
    assert comine("job", "watch", "w").code == 50
    assert comine("job", "result", "w").code == 50


def test_a_party_that_cannot_be_told_of_a_cancellation_is_named(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}):
        job_id = submitted(comine)
    ran = comine("job", "cancel", job_id)
    assert ran.code == 20
    assert "north and south could not be told" in ran.err
    (line,) = json.loads(comine("job", "list", "--json").out)["jobs"]
    assert (line["state"], line["error"]["exit_code"]) == ("cancelled", 50)


def test_a_denial_ends_the_watch_with_30(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}) as made:
        job_id = submitted(comine)
        person(made, "south", lambda node: node.deny("ann at south denied it: not now"))
        ran = comine("job", "watch", job_id)
    assert ran.code == 30
    assert ran.err.splitlines()[-1] == "comine: ann at south denied it: not now (E300; comine explain E300)"


def test_a_submission_expires_with_60(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}):
        ran = comine("job", "watch", submitted(comine, "--expires", "3s"))
    assert ran.code == 60
    assert "before south had decided" in ran.err


def test_run_says_for_whom_it_waits_once(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}) as made:
        approving = soon(made.nodes["south"].watched.is_set, lambda: person(made, "south", Script.approve))
        ran = comine(*RUN)
        approving.join()
    assert ran.code == 0
    assert ran.err.count("for the approval of south") == 1


def test_ctrl_c_on_watch_detaches(comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nodes(tmp_path, north={"hold": True}, south={"hold": True}) as made:
        job_id = submitted(comine)
        looked = threading.Event()
        before = JobFolder.lock
        monkeypatch.setattr(JobFolder, "lock", lambda folder: (looked.set(), before(folder))[1])
        interrupting = soon(looked.is_set, lambda: os.kill(os.getpid(), signal.SIGINT))
        ran = comine("job", "watch", job_id)
        interrupting.join()
        assert ran.code == 0
        assert "the job goes on" in ran.err
        assert not any("Cancel" in node.calls for node in made.nodes.values())
        for name in made.nodes:
            person(made, name, proceed)
        assert comine("job", "watch", job_id).code == 0


def test_the_federation_may_come_from_the_environment(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fed").mkdir()
    with nodes(tmp_path / "fed"):
        assert comine("job", "list").code == 10
        monkeypatch.setenv("COMINE_FEDERATION", "fed/federation.toml")
        assert comine("job", "run", "fed/job.toml").code == 0
        assert len(json.loads(comine("job", "list", "--json").out)["jobs"]) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("watch", "ffff"),
        ("status", "none"),
        ("result", "none"),
        ("cancel", "none"),
        ("report", "none"),
        ("submit", "job.toml", "--expires", "soon"),
        ("submit", "job.toml", "--expires", "31d"),
        ("run", "job.toml", "--expires", "0s"),
    ],
)
def test_what_does_not_exist_exits_2(comine: Comine, tmp_path: Path, words: tuple[str, ...]) -> None:
    with nodes(tmp_path):
        pass
    ran = comine("job", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1


def test_an_unreadable_job_is_listed_as_such(comine: Comine, tmp_path: Path) -> None:
    with nodes(tmp_path):
        assert comine(*RUN).code == 0
    spoilt = tmp_path / "jobs" / ("ab" * 32)
    spoilt.mkdir()
    ran = comine("job", "list", "--json")
    assert ran.code == 0
    assert len(ran.err.splitlines()) == 1
    contents = checked(ran.out, "jobs")
    assert (len(contents["jobs"]), contents["unreadable"]) == (1, [str(spoilt)])
    assert comine("job", "status", spoilt.name).code == 10
