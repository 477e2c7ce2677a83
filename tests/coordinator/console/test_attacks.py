"""What parties, people and earlier jobs may be called, against the pages of a coordinator's console."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import comine
from console.settings import ConsoleSection
from console.site import Site
from coordinator.console.calls import Calls
from coordinator.console.log import open_log
from coordinator.console.site import site_of
from coordinator.jobs.descriptions import Asked
from coordinator.jobs.lifecycle import Ended, Problem, step
from coordinator.jobs.records.store import Store
from coordinator.jobs.runner import draft
from coordinator.member import load_federation
from link.pki.authority import write_identity
from protos.v1.control_pb2 import DatasetDescription, Description
from tests.console.markup import HOSTILE, check_markup
from tests.console.sites import PASSWORD, browser_of, log_in
from tests.looped import looped
from tests.party.files import COORDINATOR, write_federation
from tests.party.nodes import weekly

KIND: Final = "itemsets horizontal exact"
BOTH: Final = {"party.north": "on", "party.south": "on"}
FILE: Final = '[job]\nname = "w"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "b"\n[itemsets]\n'
ROWS: Final = [[HOSTILE, "milk"], [HOSTILE], ["milk", "</script>"], ["milk"]]


results = dict[str, Any]()  # by id of the jobs of the fixture


@cache
def simulated(number: int) -> Any:
    """The result of the job of the fixture, once for all tests."""
    spec = weekly(name=HOSTILE, parties=["north", "south"])
    return comine.simulate(spec, {"north": ROWS, "south": ROWS[:number]}, seed=1)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A coordinator that keeps two jobs; of the parties one says what it likes, and the other is silent so."""
    authority = write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    write_identity(authority.issue("analyst", "coordinator"), tmp_path / "pki")
    file = tmp_path / "federation.toml"
    file.write_text(file.read_text() + COORDINATOR)
    known, identity = load_federation(file)
    results.clear()
    store, spec = Store.of(known), weekly(name=HOSTILE, parties=["north", "south"])
    for number in (2, 3):
        record = draft(spec, identity, 600)
        record.job, _ = step(record.job, Ended(Problem("E201", HOSTILE, "south")), time.time())
        folder = store.create(record)
        folder.note("cancelled", HOSTILE)
        folder.unlock()
        results[folder.id] = simulated(number)
    for module in ("coordinator.console.jobs", "coordinator.jobs.run_comparison"):
        monkeypatch.setattr(f"{module}.kept_result", lambda folder, _: results[folder.id])
    datasets = [DatasetDescription(name=f"{HOSTILE}{number}", kind=HOSTILE) for number in range(30)]
    said = Description(name="north", datasets=datasets, tasks=[HOSTILE], peers=[HOSTILE])

    async def ask(*_: Any) -> Asked:
        return Asked({"north": said}, {"south": HOSTILE})

    monkeypatch.setattr("coordinator.console.compose.ask", ask)
    with Calls() as calls:
        found = site_of("analyst", file, ConsoleSection(), calls, open_log("analyst", io.StringIO()))
        found.accounts.add("anna", "approver", PASSWORD)
        yield found


@looped
async def test_what_others_write_is_text_on_every_page(site: Site) -> None:
    first, second = results
    job = f'[job]\nname = "{HOSTILE.replace(chr(34), "")}"\ntask = "itemsets"\nparties = ["north", "south", "<b>"]\n'
    asked = [
        ("GET", "/jobs", {}),
        ("GET", f"/jobs/{first}", {}),
        ("GET", f"/compose/like/{first}", {}),
        ("GET", "/results", {}),
        ("GET", "/results/compare", {first: "on", second: "on"}),
        ("GET", "/compose", {}),
        ("GET", "/compose/job", {"kind": KIND, "dataset": f"{HOSTILE} # x", "party.north": "on", "party.south": "on"}),
        ("POST", "/compose/check", {"file": job}),
        ("POST", "/compose/check", {"file": f"{job}{HOSTILE}"}),
        ("POST", "/compose/text", {"kind": KIND, "party.north": "on", "party.south": "on", "job.name": HOSTILE}),
        ("POST", "/compose/plan", {"file": f"{job}{HOSTILE}"}),
        ("POST", "/compose/submit", {"file": job, "expires": HOSTILE}),
    ]
    async with browser_of(site) as client:
        await log_in(client, "anna")
        shown = []
        for method, path, given in asked:
            answer = await client.request(method, path, **{"params" if method == "GET" else "data": given})
            assert answer.status_code == 200, (path, answer.text)
            if check_markup(answer.text):
                shown.append(path)
        for name in (HOSTILE, "a\nb", 'a"]'):
            form = {"kind": KIND, "dataset": "b", "party.north": "on", f"party.{name}": "on"}
            assert (await client.get("/compose/job", params=form)).status_code == 400
        offered = await client.get("/compose/job", params={"kind": KIND, "dataset": "baskets", **BOTH})
        assert '<option value="0.2">' in offered.text
        other = await client.get("/compose/job", params={"kind": KIND, "dataset": "others", **BOTH})
        assert "<datalist" not in other.text
        report = await client.get(f"/jobs/{first}/report")
    assert len({*shown}) >= 7
    assert "sandbox" in report.headers["content-security-policy"]
    assert "<img src=x" not in report.text


@pytest.mark.parametrize(
    "line",
    [
        "max_length = 1e999999999",
        "max_length = " + "9" * 5_000,
        "exclude = " + "[" * 5_000,
        'universe = "/etc/passwd"',
        'universe = "../../pki/analyst.key"',
        "min_count = 1e-999999999",
    ],
)
@looped
async def test_a_job_file_is_judged_at_once_and_reads_nothing_here(site: Site, line: str) -> None:
    async with browser_of(site) as client:
        await log_in(client, "anna")
        answer = await client.post("/compose/check", data={"file": f"{FILE}{line}\n"})
    assert answer.status_code == 200
    assert 'id="faults"' in answer.text
    assert "root:" not in answer.text
    assert "PRIVATE KEY" not in answer.text


@looped
async def test_a_party_names_as_much_as_a_page_has_room_for(site: Site) -> None:
    async with browser_of(site) as client:
        await log_in(client, "anna")
        answer = await client.post("/compose/check", data={"file": f"{FILE}min_count = 2\n"})
    assert len(answer.text) < 20_000
