"""Nodes are upgraded one by one while jobs come in: each ends exact or in a sentence, and no node forgets anything."""

from __future__ import annotations

import contextlib
import csv
import json
import signal
import sqlite3
import threading
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from link.version import WINDOW
from mining.reference.pooled import brute_force
from party.state.node_database import FILE, KIND
from protos.v1.link_pb2 import Receipt, SignedReceipt
from tests.integration.feigned import NEXT, SOFTWARE
from tests.integration.processes import END_S, START_S, Organisations, Ran
from tests.party.nodes import DATA

pytestmark = pytest.mark.slow

RELEASE = "tests.integration.feigned:next_release"


class Load:
    """A coordinator of the next release, which runs one job after another. A context that ends with the last of them.

    Args:
        world: The nodes.

    Attributes:
        ran: How each job has ended.
    """

    def __init__(self, world: Organisations) -> None:
        self._world, self._over, self._more = world, threading.Event(), threading.Condition()
        self.ran: list[Ran] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def until_one_succeeds(self) -> None:
        """Waits for a job that succeeds and began after this call."""
        first = len(self.ran) + 1  # the one that runs now does not count
        with self._more:
            assert self._more.wait_for(lambda: any(ran.code == 0 for ran in self.ran[first:]), END_S), self.ran

    def _run(self) -> None:
        while not self._over.is_set():
            ran = self._world.begin("job.toml", f"out{len(self.ran)}", release=RELEASE).end()
            with self._more:
                self.ran.append(ran)
                self._more.notify_all()


def itemsets(folder: Path) -> dict[frozenset[str], int]:
    with (folder / "itemsets.csv").open(newline="") as file:
        return {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in csv.DictReader(file)}


def events(folder: Path, name: str, event: str) -> list[dict[str, Any]]:
    """What a node's audit log has of one kind."""
    lines = (folder / "state" / name / "audit.log").read_text().splitlines()
    return [entry["fields"] for entry in map(json.loads, lines) if entry["event"] == event]


def spoken(folder: Path) -> list[int]:
    """The version of the wire in each session that was complete, as its parties have signed it."""
    accounts = [entry["peers"]["south"] for entry in events(folder, "north", "transcript") if entry["complete"]]
    signed = [SignedReceipt.FromString(b64decode(account["theirs"])) for account in accounts]
    return [int(Receipt.FromString(each.receipt).version) for each in signed]


def succeeded(folder: Path, name: str) -> int:
    """How many jobs a node's database knows that succeeded; it was migrated, and whole."""
    with contextlib.closing(sqlite3.connect(folder / "state" / name / FILE)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(KIND.versions) + 1,)
        assert database.execute("SELECT what FROM later").fetchall() == [("migrated",)]
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (number,) = database.execute("SELECT count(*) FROM jobs WHERE state = 'SUCCEEDED'").fetchone()
    return int(number)


def test_three_nodes_are_upgraded_one_by_one_while_jobs_come_in(tmp_path: Path) -> None:
    world = Organisations.create(tmp_path, DATA)
    world.job()
    try:
        world.start()
        with Load(world) as load:
            for name in DATA:
                load.until_one_succeeds()
                world.nodes[name].send(signal.SIGTERM)
                assert world.nodes[name].end(START_S).code == 0
                world.start(name, release=RELEASE)
            load.until_one_succeeds()
    finally:
        world.stop()
    exact = brute_force((row for rows in DATA.values() for row in rows), 36)
    for number, ran in enumerate(load.ran):
        if ran.code == 0:
            assert itemsets(tmp_path / f"out{number}") == exact
        else:
            assert ran.code in (20, 50), ran.err
            assert "run the job again" in ran.sentence or "cannot be reached" in ran.sentence, ran.sentence
    number = sum(ran.code == 0 for ran in load.ran)
    for name in DATA:
        assert succeeded(tmp_path, name) == number
        software = [entry["software"] for entry in events(tmp_path, name, "node-started")]
        assert software[0] != software[-1] == SOFTWARE
    wires = spoken(tmp_path)
    assert wires == sorted(wires)
    assert (wires[0], wires[-1]) == (WINDOW.latest, NEXT.latest)
