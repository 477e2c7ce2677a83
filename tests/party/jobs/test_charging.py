"""A start is charged before anything leaves, and a job under noise once, whatever dies between and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.spec.job import JobSpec
from link.errors import ResourceError
from party.jobs.charging import charge_start, charged
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.state.journals import Journals
from party.state.ledger import Ledger
from party.state.store import Store
from tests.errors import fails
from tests.mining.joint.distributed.test_distributed_jobs import job as noisy_job
from tests.mining.joint.hybrid.hybrid_world import job as reported_job

BLENDED = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["north"]}


class Party:
    """What a start needs of a node, which may be started again."""

    def __init__(self, folder: Path, spec: JobSpec) -> None:
        self.folder = folder
        self.job = cast(Job, SimpleNamespace(spec=spec, id=bytes(32), coordinator="analyst"))
        self.begin()

    def begin(self) -> None:
        self.store = Store.open(self.folder / "node.db")
        self.ledger, self.journals = Ledger.beside(self.store), Journals.beside(self.store, "north")

    def crash(self) -> None:
        """Nothing is left but what is on the disk."""
        self.store.close()
        self.begin()

    def start(self, attempt: int) -> None:
        consent = SimpleNamespace(judge=SimpleNamespace(looks_at_rows=lambda _: True))
        context = cast(JobContext, SimpleNamespace(ledger=self.ledger, journals=self.journals, consent=consent))
        charge_start(context, self.job, attempt, float(attempt))

    def starts(self) -> list[int]:
        """Those that were charged, and so count among exact jobs."""
        assert self.ledger.results(["baskets"]) or not self.ledger.of_job(bytes(32))
        return [entry.attempt for entry in self.ledger.of_job(bytes(32))]


SPECS: list[Callable[[], JobSpec]] = [
    noisy_job,
    reported_job,
    lambda: reported_job(privacy=BLENDED, itemsets={"max_length": 1}),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_job_is_charged_once_whatever_dies(tmp_path: Path, spec: Callable[[], JobSpec]) -> None:
    party = Party(tmp_path, spec())
    for attempt in (1, 1, 2, 5):  # of the first it was not written any more that it has begun
        party.start(attempt)
        party.crash()
    assert party.starts() == [1]
    assert [len(charged(party.ledger, bytes(32), attempt)) for attempt in (1, 2, 5)] == [1, 0, 0]
    assert sum(party.ledger.spent("baskets").values()) == 1
    party.store.close()


def test_a_journal_that_cannot_be_opened_charges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    party = Party(tmp_path, noisy_job())

    def full(*_: Any, **__: Any) -> None:
        raise ResourceError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(party.journals, "begin", full)
        with pytest.raises(ResourceError):
            party.start(1)
    assert party.starts() == []
    party.start(2)
    assert party.starts() == [2]
    party.store.close()


def test_a_job_whose_charge_stays_and_whose_coins_are_lost_is_not_begun(tmp_path: Path) -> None:
    party = Party(tmp_path, noisy_job())
    party.start(1)
    party.journals.forget(bytes(32))
    with fails("E100"):
        party.start(2)
    assert party.starts() == [1]
    party.store.close()
