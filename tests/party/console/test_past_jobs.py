"""Pages of jobs that have ended, of a node that does not run, without a browser."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from comine.command import run
from console.lists import PART
from party.console import jobs, results
from party.state.node_database import FILE
from party.state.store import Record, Store
from protos.v1 import control_pb2 as control
from protos.v1.control_pb2 import CANCELLED, DENIED, EXPIRED, FAILED, SUCCEEDED, JobState
from tests.errors import fails
from tests.party.console.content import content
from tests.party.files import write_federation
from tests.party.nodes import weekly

STATES = (SUCCEEDED, FAILED, CANCELLED, DENIED, EXPIRED)
NUMBER, EXPIRY = 55, 2_000_000_000


@pytest.fixture
def north(tmp_path: Path) -> Path:
    """The file of a node of which 55 jobs have ended, each a minute after the one before."""
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    state = tmp_path / "state" / "north"
    state.mkdir(parents=True)
    spec = weekly(parties=["north", "south"], name="evil <b>")
    with closing(Store.open(state / FILE)) as store, store.alone():
        for number in range(NUMBER):
            nonce = number.to_bytes(16, "big")
            proposal = control.Proposal(spec=spec.canonical(), nonce=nonce, expiry=EXPIRY)
            store.add(
                Record(
                    spec.job_id(nonce, EXPIRY),
                    control.SignedProposal(proposal=proposal.SerializeToString()).SerializeToString(),
                    "analyst",
                    "baskets",
                    ("north", "south"),
                    "0.2",
                    EXPIRY,
                    1e9 + 60 * number,
                    STATES[number % len(STATES)],
                    decided_by="anna",
                )
            )
    return tmp_path / "north.toml"


def test_they_are_those_of_the_command_a_part_at_a_time(north: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["party", "inbox", str(north), "--all", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["jobs"]
    pages = jobs.pages(north)
    first, second = (content(pages, "/jobs/history", {"page": page})["jobs"] for page in ("1", "2"))
    assert (first.total, second.number) == (NUMBER, 2)
    assert [*first.rows, *second.rows] == listed
    assert len(first.rows) == PART
    for state in STATES:
        name = JobState.Name(state).lower()
        found = content(pages, "/jobs/history", {"state": name, "coordinator": "analyst", "dataset": "baskets"})
        assert found["jobs"].rows == [job for job in listed if job["state"] == name]
        assert found["base"] == f"/jobs/history?state={name}&coordinator=analyst&dataset=baskets&"
    assert content(pages, "/jobs/history", {"coordinator": "nobody"})["jobs"].total == 0
    succeeded = [job for job in listed if job["state"] == "succeeded"]
    found = content(results.pages(north), "/results", {})
    assert (found["jobs"].rows, found["here"], found["held"]["results"]) == (succeeded, set(), [])
    shown = content(pages, "/jobs/{job}", {}, job=succeeded[0]["job_id"])
    assert (shown["job"]["state"], shown["has_report"], shown["going"]) == ("succeeded", False, False)
    with fails("E001"):
        content(pages, "/jobs/{job}/report", {}, job=succeeded[0]["job_id"])
