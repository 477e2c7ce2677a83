"""Rules that count jobs count those on all datasets of one file together: another name would be another limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from jobs.privacy_account import charge
from link.errors import PolicyDenied
from party.anonymization.releases import Releases
from party.budget import budget
from party.config import PartyConfig
from party.judge import Judge
from party.ledger import Entry, Ledger
from party.store import Store
from protos.v1.control_pb2 import JobState
from tests.unit.party.files import PARTIES, party_toml
from tests.unit.party.test_max_unions import job, noisy
from tests.unit.party.test_store import record

TWIN = """[[dataset]]
name = "twin"
kind = "transactions"
source = "north.dat"
format = "basket"
[dataset.privacy]
epsilon = 1.5
delta = 1e-5
"""


@contextmanager
def node(folder: Path, policy: str = "") -> Iterator[tuple[Judge, Store, Ledger, PartyConfig]]:
    path = folder / "north.toml"
    path.write_text(party_toml("north", policy=policy).replace("[policy]", f"{TWIN}[policy]"))
    config = PartyConfig.load(path)
    with (
        closing(Store.open(folder / "node.db")) as store,
        closing(Ledger.open(folder / "node.db")) as ledger,
        closing(Releases.open(folder / "releases.db", "north")) as releases,
    ):
        yield Judge(config, PARTIES, store, ledger, releases), store, ledger, config


def test_jobs_under_two_names_are_counted_together(tmp_path: Path) -> None:
    with node(tmp_path, "max_jobs = 2\n") as (judge, store, *_):
        for number, dataset in enumerate(("baskets", "twin"), 1):
            judge.decide(job(dataset=dataset), "analyst")
            started = record(number, dataset=dataset, started=time.time(), state=JobState.SUCCEEDED)
            assert store.add(started)
        for dataset in ("baskets", "twin"):
            with pytest.raises(PolicyDenied, match="rule max_jobs"):
                judge.decide(job(dataset=dataset), "analyst")


def test_parties_are_those_of_the_first_job_under_any_name(tmp_path: Path) -> None:
    with node(tmp_path, 'party_sets = "fixed"\n') as (judge, store, *_):
        assert store.add(
            record(1, dataset="twin", started=time.time(), parties="north south", state=JobState.SUCCEEDED)
        )
        with pytest.raises(PolicyDenied, match="rule party_sets"):
            judge.decide(job(), "analyst")


def test_noise_under_two_names_is_charged_to_both(tmp_path: Path) -> None:
    """A job of ε = 1 on the one name leaves 0.5 of 1.5 to the other."""
    with node(tmp_path) as (judge, _, ledger, config):
        spec = noisy()
        ledger.record(Entry(bytes(32), 1, time.time(), "baskets", "weekly", "analyst", charge(spec), False))
        contents = spec.model_dump(mode="json", by_alias=True)
        contents["job"]["dataset"] = "twin"
        again = type(spec).of(contents, "job.toml", tmp_path)
        with pytest.raises(PolicyDenied, match="epsilon"):
            judge.decide(again, "analyst", job_id=bytes([1]) * 32)
        told = {each.name: each for each in budget(config, ledger, None, time.time()).datasets}
        assert told["twin"].left.epsilon == "0.5"
