"""A job is judged by the kind of the dataset that it asks for, before anybody approves it."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from jobs.kinds.rows.kind import KIND
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from party.config import PartyConfig
from party.policy.judge import Judge
from party.services.anonymization.releases import Releases
from party.state.ledger import Ledger
from party.state.store import Store
from tests.errors import fails
from tests.party.files import PARTIES, party_toml


def spec(partition: str) -> JobSpec:
    job = {"name": "weekly", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"}
    contents = {"job": {**job, "partition": partition}, "itemsets": {"min_support": 2}}
    return job_of(contents, "job.toml", Path())


@pytest.mark.parametrize(
    ("kind", "fits", "other"), [("transactions", "horizontal", "vertical"), ("table", "vertical", "horizontal")]
)
def test_the_kind_of_the_dataset_decides(tmp_path: Path, kind: str, fits: str, other: str) -> None:
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north").replace('"transactions"', f'"{kind}"').replace('"basket"', '"csv"'))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger, releases)
        assert judge.decide(spec(fits), "analyst") == "auto"
        for ask in (judge.decide, judge.verdicts):
            with fails("E100"):
                ask(spec(other), "analyst")
    finally:
        store.close(), ledger.close(), releases.close()


@pytest.mark.parametrize("engine", ["auto", "memory", "processes"])
def test_rows_in_blocks_are_not_for_a_kind_that_needs_them_in_memory(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kinds of plug-ins may; it is said when the job is proposed."""
    monkeypatch.setattr(type(KIND), "in_blocks", False)
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north").replace('kind = "transactions"', f'kind = "transactions"\nengine = "{engine}"'))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger, releases)
        with fails("E100") if engine == "processes" else nullcontext():
            assert judge.decide(spec("horizontal"), "analyst") == "auto"
    finally:
        store.close(), ledger.close(), releases.close()


def test_a_job_whose_dataset_is_gone_takes_no_memory_and_gets_the_usual_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a reload, of a job that was approved before."""
    monkeypatch.setattr("party.policy.judge.expected_memory", lambda *_: 7)
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north", party="memory = 67108864"))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    try:
        config = PartyConfig.load(path)
        asked = spec("horizontal")
        assert Judge(config, PARTIES, store, ledger, releases).memory_of(asked) == 7
        gone = (config.dataset[0].model_copy(update={"name": "visits"}),)
        judge = Judge(config.model_copy(update={"dataset": gone}), PARTIES, store, ledger, releases)
        assert judge.memory_of(asked) == 0
        with fails("E100"):
            judge.decide(asked, "analyst")
    finally:
        store.close(), ledger.close(), releases.close()


def test_expected_memory_is_known_to_one_thread_whatever_others_forget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.policy.judge.expected_memory", lambda *_: 7)
    monkeypatch.setattr("party.policy.judge.KEPT_EXPECTED", 1)
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north", party="memory = 67108864"))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")

    class Meanwhile:
        """A job; whenever its memory is looked up, another thread is faster, and has one of another forgotten."""

        job, others = spec("horizontal").job, count()

        @property
        def digest(self) -> bytes:
            judge.memory_of(cast(JobSpec, SimpleNamespace(job=self.job, digest=next(self.others))))
            return b"digest"

    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger, releases)
        assert judge.memory_of(cast(JobSpec, Meanwhile())) == 7
    finally:
        store.close(), ledger.close(), releases.close()


def private(model: str) -> JobSpec:
    contents = spec("horizontal").model_dump(mode="json", by_alias=True)
    contents["privacy"] = {"model": model, "epsilon": "1", "delta": "1e-6"}
    return job_of(contents, "job.toml", Path())


@pytest.mark.parametrize("bounded", [True, False])
def test_no_rule_tells_anything_exact_of_the_rows_to_a_job_whose_noise_is_bounded(
    tmp_path: Path, bounded: bool
) -> None:
    """A refusal would tell whether rows have changed since the last job: of one record, with certainty.

    Where nothing bounds the noise it protects nothing, and rules on rows hold for the job as for any other.
    """
    path = tmp_path / "north.toml"
    totals = "[dataset.privacy]\nepsilon = 1\ndelta = 1e-5\n" if bounded else ""
    path.write_text(party_toml("north", dataset=totals).replace("[policy]", "[policy]\nmin_new_rows = 5"))
    exact, noisy = spec("horizontal"), private("distributed")
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger, releases)
        assert [judge.looks_at_rows(job) for job in (exact, noisy)] == [True, not bounded]
        later = [{each.rule for each in judge.verdicts(job, "analyst") if each.later} for job in (exact, noisy)]
        assert later == [{"min_new_rows"}, set() if bounded else {"min_new_rows"}]
    finally:
        store.close(), ledger.close(), releases.close()


def test_rows_in_which_rules_are_hidden_have_no_privacy_model(tmp_path: Path) -> None:
    """What hides a rule changes many rows where one is added, which the noise is not made for."""
    path = tmp_path / "north.toml"
    hiding = '[dataset.hiding]\nrules = ["bread -> milk"]\nmin_support = 2\n'
    path.write_text(party_toml("north", dataset=hiding))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    releases = Releases.open(tmp_path / "releases.db", "north")
    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger, releases)
        assert judge.decide(spec("horizontal"), "analyst") == "auto"
        with fails("E300", party="north"):
            judge.decide(private("distributed"), "analyst")
    finally:
        store.close(), ledger.close(), releases.close()
