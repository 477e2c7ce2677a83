"""Extension seeds outlive jobs, processes and their deaths, on real nodes."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.processes import Organisations
from tests.unit.party.nodes import DATA

pytestmark = pytest.mark.slow

PARTIES = tuple(DATA)[:2]


@pytest.fixture
def organisations(tmp_path: Path) -> Iterator[Organisations]:
    made = Organisations.create(tmp_path, {name: DATA[name] for name in PARTIES})
    made.job(more='disclose = "supports"\n')
    try:
        made.start()
        yield made
    finally:
        made.stop()


def run(organisations: Organisations, number: int) -> str:
    """Runs the job; its table."""
    ran = organisations.run_here("job.toml", f"out{number}")
    assert ran.code == 0, ran.err
    return (organisations.folder / f"out{number}" / "itemsets.csv").read_text()


def file_of(organisations: Organisations, party: str) -> Path:
    return organisations.folder / "state" / party / "stock.db"


def stocks(organisations: Organisations, party: str) -> dict[str, tuple[bytes, int]]:
    """By role, a stock's id and the number of the next lease."""
    with closing(sqlite3.connect(file_of(organisations, party))) as connection:
        return {role: (name, number) for role, name, number in connection.execute("SELECT role, id, next FROM stocks")}


def events(organisations: Organisations, party: str) -> list[tuple[str, str | None]]:
    lines = [json.loads(line) for line in organisations.nodes[party].lines if line.startswith("{")]
    return [(line["event"], line.get("reason")) for line in lines if line["event"].startswith("stock")]


def copy_while_stopped(organisations: Organisations, party: str, source: Path, target: Path) -> None:
    organisations.nodes[party].send(signal.SIGTERM)
    assert organisations.nodes[party].end().code == 0
    shutil.copy(source, target)
    organisations.start(party)


def test_a_stock_serves_job_after_job_also_when_a_node_is_killed(organisations: Organisations) -> None:
    tables = [run(organisations, number) for number in range(2)]
    first = {party: stocks(organisations, party) for party in PARTIES}
    for party in PARTIES:
        assert events(organisations, party) == [("stock made", None)] * 2
        assert {role: number for role, (_, number) in first[party].items()} == {"sender": 2, "receiver": 2}
    one, other = PARTIES
    assert first[one]["sender"] == first[other]["receiver"]
    assert first[one]["receiver"] == first[other]["sender"]

    lines = len(organisations.nodes[one].lines)
    begun = organisations.begin("job.toml", "killed")
    organisations.nodes[one].until("job started", after=lines)
    organisations.nodes[one].send(signal.SIGKILL)
    organisations.nodes[one].kill()
    organisations.start(one)  # else, had it only its result to hand over, it would be waited for until the deadline
    begun.end()
    tables.append(run(organisations, 2))
    assert len(set(tables)) == 1
    last = {party: stocks(organisations, party) for party in PARTIES}
    for party in PARTIES:
        assert ("stock dropped", "rolled back at the peer") not in events(organisations, party)
        for role, (name, number) in last[party].items():
            assert (name, number > first[party][role][1]) == (first[party][role][0], True)
    assert last[one]["sender"] == last[other]["receiver"]


def test_a_file_that_was_restored_is_refused_and_made_anew(organisations: Organisations) -> None:
    one, other = PARTIES
    tables = [run(organisations, 0)]
    before = stocks(organisations, one)
    copy = organisations.folder / "copy.db"
    copy_while_stopped(organisations, one, file_of(organisations, one), copy)
    tables.append(run(organisations, 1))
    copy_while_stopped(organisations, one, copy, file_of(organisations, one))
    tables += [run(organisations, 2), run(organisations, 3)]
    assert len(set(tables)) == 1
    after = stocks(organisations, one)
    assert not {name for name, _ in before.values()} & {name for name, _ in after.values()}
    assert {role: number for role, (_, number) in after.items()} == {"sender": 2, "receiver": 2}
    assert after["sender"] == stocks(organisations, other)["receiver"]
    reasons = {why for party in PARTIES for event, why in events(organisations, party) if event == "stock dropped"}
    assert {"rolled back here", "rolled back at the peer"} & reasons
