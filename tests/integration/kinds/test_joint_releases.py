"""A release with others counts where something of the rows may have left, is in the log, and is not forgotten."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobs.audit.recorder import SessionRecorder
from link.errors import ComineError, ConfigurationError, InputDataError, OverLimit, PeerError, shareable
from link.pki.authority import Authority
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from party.services.anonymization.releases import Counted
from protos.v1.control_pb2 import CANCELLED, FAILED
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_jobs_world import RELEASED, job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, people
from tests.party.nodes import Nodes, hold, refused, running

NAMES = PARTIES[:3]
SPEC = job(insider_k=1, recipients=("coordinator",))


def prepared(folder: Path) -> Callable[[Authority], None]:
    def prepare(_: Authority) -> None:
        cells = people(60, 3)
        for place, party in enumerate(NAMES):
            own = {name: column[20 * place : 20 * place + 20] for name, column in cells.items()}
            with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
            dataset = f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{party}.csv"\nformat = "csv"\nid = []\n'
            path = folder / f"{party}.toml"
            text = path.read_text().replace(
                'tasks = ["itemsets", "rules"]', f'tasks = ["anonymize"]\ncolumns = {RELEASED}'
            )
            path.write_text(text.replace("[policy]", f"{dataset}[policy]"))

    return prepare


def counted(nodes: Nodes) -> list[Counted]:
    return [node.releases.counted("people") for node in nodes.nodes.values()]


def fails_once_all_have_begun(error: ComineError) -> Callable[[SessionRecorder, bytes], Awaitable[None]]:
    """In the place of `SessionRecorder.began`; a party that is told of the end before it has begun counts nothing."""
    began, barrier = SessionRecorder.began, asyncio.Barrier(len(NAMES))

    async def fails(recorder: SessionRecorder, session: bytes) -> None:
        await began(recorder, session)
        await barrier.wait()
        raise error

    return fails


def test_a_release_of_which_nothing_left_is_not_counted(tmp_path: Path) -> None:
    """The coordinator gives up before the parties have met; the same job once more is no second release."""

    async def test() -> None:
        async with running(tmp_path, data={name: [["a"]] for name in NAMES}, prepare=prepared(tmp_path)) as nodes:
            for node in nodes.nodes.values():
                hold(node)
            job_id = await nodes.begin(SPEC)
            assert counted(nodes) == [Counted(1, 0)] * 3
            refusal = await refused(nodes.clients["north"].decide(SPEC, bytes(range(16))))
            assert "(rule max_releases)" in refusal.sentence
            await nodes.all(lambda client: client.cancel(job_id))
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {CANCELLED}
            assert counted(nodes) == [Counted(0, 0)] * 3
            await nodes.agree(SPEC)

    asyncio.run(test())


@pytest.mark.parametrize("error", [ConfigurationError, InputDataError, OverLimit])
def test_a_release_that_the_rows_do_not_allow_leaves_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[ComineError]
) -> None:
    """No node satisfies, cells do not fit, or some party has more rows than the job's bound: it counts as a failure."""

    async def test() -> None:
        async with running(tmp_path, data={name: [["a"]] for name in NAMES}, prepare=prepared(tmp_path)) as nodes:
            with monkeypatch.context() as patch:
                patch.setattr(SessionRecorder, "began", fails_once_all_have_begun(shareable(error("rows allow none"))))
                _, ends = await nodes.run(SPEC)
            assert {event.error_code for event in ends.values()} == {error.code}
            assert counted(nodes) == [Counted(0, 1)] * 3

    asyncio.run(test())


def test_a_release_that_broke_once_its_session_had_begun_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a party has not opened itself, others may have; and the log knows of it, in whatever place it broke."""

    async def test() -> None:
        async with running(tmp_path, data={name: [["a"]] for name in NAMES}, prepare=prepared(tmp_path)) as nodes:
            states = {name: tmp_path / "state" / name for name in NAMES}
            for name, state in states.items():
                shutil.copytree(state, tmp_path / "early" / name)
            with monkeypatch.context() as patch:
                patch.setattr(SessionRecorder, "began", fails_once_all_have_begun(PeerError("the network broke")))
                _, ends = await nodes.run(SPEC)
            assert {event.state for event in ends.values()} == {FAILED}
            assert counted(nodes) == [Counted(1, 0)] * 3
        for name, state in states.items():
            told = [json.loads(line) for line in (state / "audit.log").read_text().splitlines()]
            (entry,) = (line["fields"] for line in told if line["event"] == "joint-release-began")
            assert (entry["dataset"], entry["coordinator"], entry["number"]) == ("people", "analyst", 1)
            for lost in ("older", "empty", "gone"):
                for file in state.glob("releases.db*"):
                    file.unlink()
                for file in (tmp_path / "early" / name).glob("releases.db*") if lost == "older" else ():
                    shutil.copy(file, state / file.name)
                if lost == "empty":
                    (state / "releases.db").touch()
                with fails("E100"):
                    Node(PartyConfig.load(tmp_path / f"{name}.toml"), open_log(name))

    asyncio.run(test())
