"""A job that seems to be ended by nobody: the other nodes keep which peer told them so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.runner import run_job
from jobs.loading import job_of
from link.errors import BY_CODE, ComineError, OverLimit, ProtocolViolation, shareable
from party.jobs.execution import take_part as honest
from tests.party.nodes import DATA, Nodes, brief, running, weekly

LIAR = "east"
PARTIES = tuple(DATA)


def entries(nodes: Nodes, name: str, event: str) -> list[dict[str, Any]]:
    lines = (nodes.folder / "state" / name / "audit.log").read_text().splitlines()
    return [entry["fields"] for entry in map(json.loads, lines) if entry["event"] == event]


def reporter(nodes: Nodes, name: str) -> str | None:
    (end,) = entries(nodes, name, "ended")
    told: str | None = end["told_by"]
    return told


def opened(nodes: Nodes, name: str) -> set[str]:
    return {opening["label"] for entry in entries(nodes, name, "opened") for opening in entry["openings"]}


def first(name: str, heard: dict[str, str | None]) -> str:
    """Where the word comes from that a node ended by."""
    while (before := heard[name]) is not None:
        name = before
    return name


@pytest.mark.parametrize(("code", "named"), [("E100", None), ("E101", None), ("E104", None), ("E101", "south")])
def test_each_node_keeps_who_told_it_that_a_job_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, named: str | None
) -> None:
    async def take_part(room: Any, *rest: Any) -> Any:
        if room.identity.name != LIAR:
            return await honest(room, *rest)
        await asyncio.sleep(0.2)
        raise shareable(BY_CODE[code]("some party, and nobody learns which, has more", party=named))

    monkeypatch.setattr("party.jobs.session_host.take_part", take_part)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            _, told = await nodes.run(weekly())
            assert {event.error_code for event in told.values()} == {code}
            assert {event.error_party for event in told.values()} <= {named or "", LIAR, ""}
            heard = {name: reporter(nodes, name) for name in PARTIES}
            assert heard[LIAR] is None
            for name in set(PARTIES) - {LIAR}:
                assert heard[name] in set(PARTIES) - {name}
                assert first(name, heard) == LIAR
                assert f'"told_by": "{heard[name]}"' in nodes.logs[name].getvalue()

    asyncio.run(test())


def test_an_accusation_is_told_as_its_accusers_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """East accuses south: no other node says so in its own name, and the coordinator names both."""
    words = "south has dealt a count that is above its number of rows"

    async def take_part(room: Any, *rest: Any) -> Any:
        if room.identity.name != LIAR:
            return await honest(room, *rest)
        await asyncio.sleep(0.2)
        raise ProtocolViolation(f"{words}; its node must be checked", party="south")

    monkeypatch.setattr("party.jobs.session_host.take_part", take_part)

    async def test() -> None:
        async with running(tmp_path) as nodes:
            _, told = await nodes.run(weekly())
            assert {event.error_code for event in told.values()} == {"E400"}
            for name in set(PARTIES) - {LIAR}:
                assert f"{LIAR} says: {words}" in told[name].error_message
                assert told[name].error_party == ""
                (end,) = entries(nodes, name, "ended")
                assert (end["error_party"], end["told_by"] is None) == (None, False)
            with pytest.raises(ProtocolViolation) as caught:
                await run_job(brief(), nodes.authority.issue("analyst", "coordinator"), nodes.addresses)
            assert caught.value.party is None
            assert caught.value.message == (
                f"{LIAR} or south deviates, so compare the logs of both, and what evidence they keep: "
                f"{LIAR} says: {words}; its node must be checked"
            )

    asyncio.run(test())


def test_nobody_is_told_by_whom_others_have_it(tmp_path: Path) -> None:
    """Of a job that is over a limit indeed, what was opened tells all alike; a coordinator hears no reporter's name."""

    async def test() -> None:
        async with running(tmp_path) as nodes:
            rows = "".join(f"item{at} other{at}\n" for at in range(400))
            (tmp_path / "south.dat").write_text(rows)
            spec = weekly(itemsets={"universe": "hidden"})
            contents = spec.model_dump(mode="json", by_alias=True) | {"union": {"bound": 65}}
            _, told = await nodes.run(job_of(contents, "job.toml", Path()))
            assert {(event.error_code, event.error_party) for event in told.values()} == {(OverLimit.code, "")}
            assert all(not any(name in event.error_message for name in PARTIES) for event in told.values())
            met = [name for name in PARTIES if reporter(nodes, name) is None]
            assert met
            for name in met:
                assert "size classes" in opened(nodes, name)

    asyncio.run(test())


def test_an_error_says_who_told_it_to_nobody_else() -> None:
    error: ComineError = shareable(OverLimit("some party, and nobody learns which, has more"))
    error.reporter = "south"
    assert "south" not in f"{error.message}{error.at('north').message}{error.blamed('north')}"
