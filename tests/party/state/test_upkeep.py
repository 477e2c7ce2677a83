"""What a node forgets of jobs that have ended, and what rules may still ask for."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from link.errors import ComineError
from party.config import PartyConfig
from party.policy.judge import FAILED_S, Judge
from party.services.anonymization.releases import Releases
from party.state import upkeep as module
from party.state.ledger import Ledger
from party.state.store import Store
from party.state.upkeep import Upkeep
from protos.v1.control_pb2 import FAILED
from tests.errors import fails
from tests.party.files import PARTIES, party_toml
from tests.party.policy.test_same_source import job
from tests.party.state.test_store import record

NOW = 1e6
UNUSED: Any = None


@pytest.mark.parametrize("keep_jobs", ["1s", "1h", "2d"])
@pytest.mark.parametrize(("age", "counts"), [(2.0, True), (FAILED_S - 2, True), (FAILED_S + 2, False)])
def test_failures_count_for_a_day_however_soon_jobs_are_forgotten(
    tmp_path: Path, keep_jobs: str, age: float, counts: bool
) -> None:
    (tmp_path / "north.toml").write_text(
        party_toml("north", policy="max_failed_jobs = 1\n").replace(
            "[party]\n", f'[party]\nkeep_jobs = "{keep_jobs}"\n'
        )
    )
    config = PartyConfig.load(tmp_path / "north.toml")
    with contextlib.ExitStack() as stack:
        store, ledger = (
            stack.enter_context(contextlib.closing(each.open(tmp_path / "node.db"))) for each in (Store, Ledger)
        )
        releases = stack.enter_context(contextlib.closing(Releases.open(tmp_path / "releases.db", "north")))
        failed = record(state=FAILED, dataset="baskets", parties=PARTIES, started=1.0, ended=NOW - age)
        store.add(replace(failed, error_code="E101", error_party="north"))
        for number in (2, 3):  # what other rules ask for is not all that stays
            other = record(number, state=FAILED, dataset="baskets", started=0.5 * number - 0.9, ended=1.0)
            store.add(replace(other, data_digest=b"rows", n_rows=5))
        Upkeep(config, store, UNUSED, UNUSED, UNUSED, now=lambda: NOW).forget(float("-inf"))
        since = NOW - FAILED_S
        assert store.failed_here(("baskets",), "analyst", "north", PARTIES, since) == counts
        judge = Judge(config, PARTIES, store, ledger, releases, now=lambda: NOW)
        if counts:
            with fails("E300", party="north"):
                judge.decide(job(), "analyst")
        else:
            judge.decide(job(), "analyst")


def test_what_cannot_be_written_is_told_once_and_done_at_a_later_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "north.toml").write_text(party_toml("north"))
    config = PartyConfig.load(tmp_path / "north.toml")
    jobs = [record(number, state=FAILED, dataset="baskets", started=0.1 * number, ended=1.0) for number in (1, 2, 3)]
    told: list[tuple[str, str]] = []

    async def test(store: Store) -> None:
        looked = asyncio.Event()

        def failed(event: str, *, error: ComineError) -> None:
            told.append((event, error.code))
            store.connection.execute("PRAGMA query_only = OFF")

        log: Any = SimpleNamespace(error=failed)
        audit: Any = SimpleNamespace(mark=lambda: loop.call_soon_threadsafe(looked.set))  # comes last
        loop = asyncio.get_running_loop()
        upkeep = Upkeep(config, store, audit, lambda: None, log, now=lambda: 100 * NOW)
        store.connection.execute("PRAGMA query_only = ON")
        upkeep.start()
        await asyncio.wait_for(looked.wait(), 20)
        await upkeep.stop()

    monkeypatch.setattr(module, "EVERY_S", 0.001)
    with contextlib.closing(Store.open(tmp_path / "node.db")) as store:
        for each in jobs:
            store.add(replace(each, data_digest=b"rows", n_rows=5))
        asyncio.run(test(store))
        assert [store.get(each.job_id) is None for each in jobs] == [False, True, False]
    assert told == [("upkeep failed", "E103")]
