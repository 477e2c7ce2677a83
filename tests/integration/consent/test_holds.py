"""Results that a party holds until its people have seen and released them: what leaves before, and what never does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from comine.command import run
from jobs.kinds.packed_itemsets import unpack
from party.jobs.endings.holding import forget_unheld
from protos.v1 import control_pb2 as control
from tests.integration.consent.people import command
from tests.party.nodes import DATA, Nodes, audited, refused, running, weekly

pytestmark = pytest.mark.turn(3)
STEP = "held for release by its party"
WITHHELD = "north withholds the result of this job, as its policy lets it; ask its people"


def holding(folder: Path, *names: str) -> Any:
    """What lets people at some parties hold results, of nodes that are prepared."""

    def change(_: Any) -> None:
        for name in names:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text() + 'release = "manual"\n')

    return change


async def held(nodes: Nodes, name: str, job_id: bytes) -> None:
    """Returns once a party holds the result of a job."""
    async with asyncio.timeout(60):
        async for event in nodes.clients[name].stub.Watch(control.WatchRequest(job_id=job_id)):
            assert event.state == control.RUNNING, event
            if event.step == STEP:
                return


def left(folder: Path) -> list[Path]:
    """What nodes keep for coordinators, and result folders."""
    return [*folder.glob("state/*/released/*"), *folder.glob("state/*/results/*")]


def test_nothing_is_handed_over_before_all_that_hold_it_have_released_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = weekly(recipients=["all"], deadline="300s")

    async def test() -> None:
        async with running(tmp_path, prepare=holding(tmp_path, "north", "south")) as nodes:
            job_id = await nodes.begin(spec)
            for name in ("north", "south"):
                await held(nodes, name, job_id)
            north = str(tmp_path / "north.toml")
            assert await command("results", north, "--json") == 0
            (result,) = json.loads(capsys.readouterr().out)["results"]
            assert (result["job_id"], result["state"]) == (job_id.hex(), "running")
            assert [node.host.held for node in nodes.nodes.values()] == [1, 1, 0]
            shown = result["held"]
            assert "itemsets" in shown["found"]
            assert shown["n_rows"] == sum(map(len, DATA.values()))
            assert {each["label"] for each in shown["opened"]} >= {"supports"}
            (table,) = [Path(file) for file in shown["files"] if file.endswith("itemsets.csv")]
            seen = table.read_text()
            assert await command("show", north, job_id.hex()) == 0
            assert str(table) in capsys.readouterr().out
            assert left(tmp_path) == []
            for client in nodes.clients.values():  # also a learner that holds nothing itself
                assert (await refused(client.result(job_id))).code == "E401"
            assert await command("release", north, job_id.hex(), "--by", "Nora") == 0
            assert await command("release", north, job_id.hex()) == 2
            assert left(tmp_path) == []
            ending = asyncio.create_task(nodes.ends(job_id))
            assert await command("release", str(tmp_path / "south.toml"), job_id.hex(), "--json") == 0
            assert {event.state for event in (await ending).values()} == {control.SUCCEEDED}
            assert not table.exists()
            header, packed = await nodes.clients["east"].result(job_id)
            assert len(unpack(packed).itemsets) == seen.count("\n") - 1
            assert header.release

    asyncio.run(test())
    events = [entry["event"] for entry in audited(tmp_path, "north")]
    assert [each for each in events if "hold" in each or "held" in each] == ["result-held", "hold-released"]
    assert events.index("hold-released") < events.index("transcript") < events.index("released")
    ca = str(tmp_path / "pki" / "ca.crt")
    assert run(["audit", "verify", *(str(tmp_path / "state" / name / "audit.log") for name in DATA), "--ca", ca]) == 0


@pytest.mark.parametrize("how", ["withheld", "in time", "cancelled"])
def test_what_is_not_released_is_handed_over_by_nobody(tmp_path: Path, how: str) -> None:
    """And the others learn the same of what a person withholds, and of what nobody has released in time."""
    spec = weekly(recipients=["all"], deadline="4s" if how == "in time" else "300s")

    async def test() -> None:
        async with running(tmp_path, prepare=holding(tmp_path, "north")) as nodes:
            job_id, approvals = await nodes.agree(spec)
            await nodes.all(lambda client: client.start(job_id, approvals))
            ending = asyncio.create_task(nodes.ends(job_id))
            if how != "in time":
                await held(nodes, "north", job_id)
            north = str(tmp_path / "north.toml")
            if how == "withheld":
                assert await command("withhold", north, job_id.hex(), "--reason", "too few rows", "--by", "Nora") == 0
            if how == "cancelled":
                await nodes.clients["south"].cancel(job_id, "not needed")
            for name, event in (await ending).items():
                if how == "cancelled":
                    assert (event.state, event.error_code) == (control.CANCELLED, "E500"), name
                else:
                    found = (event.state, event.error_code, event.error_party, event.error_message)
                    assert found == (control.FAILED, "E301", "north", WITHHELD), name
            assert left(tmp_path) == []
            if how != "cancelled":  # which its coordinator may yet resume
                assert await command("release", north, job_id.hex()) == 2
                again = [await refused(client.start(job_id, approvals, 2)) for client in nodes.clients.values()]
                assert [each.code for each in again] == ["E301", "E401", "E401"]

    asyncio.run(test())
    assert bool(list(tmp_path.glob("state/north/held/*"))) == (how == "cancelled")
    withheld = [e["fields"] for e in audited(tmp_path, "north") if e["event"] == "hold-withheld"]
    assert [each["by"] for each in withheld] == {"withheld": ["Nora"], "in time": ["deadline"], "cancelled": []}[how]


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any] | None:
    """What `comine party results --json` has just printed of the only job that is held."""
    results = json.loads(capsys.readouterr().out)["results"]
    assert len(results) < 2
    return results[0]["held"] if results else None


def contents(files: list[str]) -> dict[str, bytes]:
    """What is in the files of a result that is held, by their names."""
    return {Path(file).name: Path(file).read_bytes() for file in files}


@pytest.mark.parametrize("what", ["released meanwhile", "released", "withheld"])
def test_what_was_held_when_its_node_died_is_decided_on_after_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """And another attempt hands over what was released, which finds the same."""
    north, state = str(tmp_path / "north.toml"), tmp_path / "state" / "north"

    async def test() -> None:
        async with running(tmp_path, prepare=holding(tmp_path, "north")) as nodes:
            job_id, approvals = await nodes.agree(weekly(deadline="300s", recipients=["all"]))
            await nodes.all(lambda client: client.start(job_id, approvals))
            await held(nodes, "north", job_id)
            before = {path.name: path.read_bytes() for path in state.glob("held/*/*")}
            assert before
            await nodes.crash("north")
            assert not any(b"item0" in path.read_bytes() for path in state.glob("node.db*"))
            if what == "released meanwhile":
                assert await command("release", north, job_id.hex()) == 0
            await nodes.restart("north")
            for name, event in (await nodes.ends(job_id)).items():
                assert (event.state, event.error_code) == (control.FAILED, "E200"), name
            capsys.readouterr()
            assert await command("results", north, "--json") == 0
            found = shown(capsys)
            if what == "released meanwhile":
                assert found is None
                assert not (state / "held").exists()
            else:
                assert found is not None
                assert found["lost"]
                assert contents(found["files"]) == before
                more = ("--reason", "too few rows") if what == "withheld" else ()
                assert await command("withhold" if more else "release", north, job_id.hex(), *more) == 0
                assert not list(state.glob("held/*"))
            assert left(tmp_path) == []
            if what == "withheld":
                assert not list(state.glob("journals/*"))
                assert (await refused(nodes.clients["north"].start(job_id, approvals, 2))).code == "E301"
                return
            await nodes.all(lambda client: client.start(job_id, approvals, 2))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}
            assert not list(state.glob("held/*"))
            assert left(tmp_path)

    asyncio.run(test())


def test_what_is_held_and_lost_is_forgotten_with_its_proposal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    north, state = str(tmp_path / "north.toml"), tmp_path / "state" / "north"

    async def test() -> None:
        async with running(tmp_path, prepare=holding(tmp_path, "north")) as nodes:
            job_id, approvals = await nodes.agree(weekly(deadline="300s", recipients=["all"]))
            await nodes.all(lambda client: client.start(job_id, approvals))
            await held(nodes, "north", job_id)
            await nodes.clients["south"].cancel(job_id, "our machine is needed")
            await nodes.ends(job_id)
            assert await command("results", north, "--json") == 0
            found = shown(capsys)
            assert found is not None
            assert found["lost"]
            assert contents(found["files"])
            host = nodes.nodes["north"].host
            record = host.context.store.get(job_id)
            assert record is not None
            forget_unheld(state, host.context.store, record.expiry - 1.0)
            assert list(state.glob("held/*"))
            forget_unheld(state, host.context.store, record.expiry)
            assert not list(state.glob("held/*"))

    asyncio.run(test())
