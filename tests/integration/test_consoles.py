"""A coordinator's console as a process of its own: a job that it submits, held by a node that dies, and its result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.integration.processes import Organisations, Process, command
from tests.party.files import free_ports
from tests.party.nodes import DATA

pytestmark = pytest.mark.slow
PASSWORD = "correct horse battery"


@pytest.fixture
def organisations(tmp_path: Path) -> Iterator[Organisations]:
    data = {name: DATA[name] for name in ("north", "south")}
    found = Organisations.create(tmp_path, data, policy="min_support = 0.1")
    north = tmp_path / "north.toml"
    north.write_text(north.read_text() + 'release = "manual"\n')
    try:
        yield found
    finally:
        found.stop()


def test_a_job_of_the_console_outlives_a_node_that_holds_it_and_its_result_is_shown(
    organisations: Organisations,
) -> None:
    folder, address = organisations.folder, f"127.0.0.1:{free_ports(1)[0]}"
    organisations.write("password", PASSWORD)
    organisations.write("console.toml", f'[console]\nlisten = "{address}"\n')
    of = ("--federation", "federation.toml")
    user = ("console", "user", "add", "anna", "--role", "approver", "--password-file", "password")
    added = command(*user, *of, cwd=folder)
    assert added.code == 0, added.err
    organisations.start()
    console = Process("console", "serve", *of, "--settings", "console.toml", cwd=folder)
    try:
        console.until("the console of hub is at")
        own = {"Origin": f"http://{address}", "Sec-Fetch-Site": "same-origin"}
        with httpx2.Client(base_url=f"http://{address}", headers=own) as client:
            assert client.post("/login", data={"name": "anna", "password": PASSWORD}).status_code == 303
            submitted = client.post("/compose/submit", data={"file": organisations.job().read_text(), "expires": "1h"})
            assert submitted.status_code == 303, submitted.text
            page = submitted.headers["location"]
            job = page.rpartition("/")[2]
            node = organisations.nodes["north"]
            node.until('"result held"')
            node.kill()
            organisations.start("north")
            held = json.loads(command("party", "results", "north.toml", "--json", cwd=folder).out)["results"]
            assert [each["job_id"] for each in held] == [job]
            released = command("party", "release", "north.toml", job, "--by", "nora", "--yes", cwd=folder)
            assert released.code == 0, released.err
            watched = command("job", "watch", job, *of, cwd=folder)
            assert watched.code == 0, watched.err
            shown, report = client.get(page), client.get(f"{page}/report")
        result = json.loads(command("job", "result", job, "--json", *of, cwd=folder).out)
        assert '<strong id="state">succeeded</strong>' in shown.text
        assert "anna submitted it" in shown.text
        assert f"{len(result['itemsets']):,}" in report.text
        assert result["n_rows"] == sum(map(len, organisations.data.values()))
    finally:
        console.kill()
