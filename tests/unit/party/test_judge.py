"""A job is judged by the kind of the dataset that it asks for, before anybody approves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.spec import JobSpec
from link.errors import ConfigurationError
from party.config import PartyConfig
from party.judge import Judge
from party.ledger import Ledger
from party.store import Store
from tests.unit.party.files import PARTIES, party_toml


def spec(partition: str) -> JobSpec:
    job = {"name": "weekly", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"}
    contents = {"job": {**job, "partition": partition}, "itemsets": {"min_support": 2}}
    return JobSpec.of(contents, "job.toml", Path())


@pytest.mark.parametrize(
    ("kind", "fits", "other"), [("transactions", "horizontal", "vertical"), ("table", "vertical", "horizontal")]
)
def test_the_kind_of_the_dataset_decides(tmp_path: Path, kind: str, fits: str, other: str) -> None:
    path = tmp_path / "north.toml"
    path.write_text(party_toml("north").replace('"transactions"', f'"{kind}"').replace('"basket"', '"csv"'))
    store, ledger = Store.open(tmp_path / "node.db"), Ledger.open(tmp_path / "node.db")
    try:
        judge = Judge(PartyConfig.load(path), PARTIES, store, ledger)
        assert judge.decide(spec(fits), "analyst") == "auto"
        for ask in (judge.decide, judge.verdicts):
            with pytest.raises(ConfigurationError) as error:
                ask(spec(other), "analyst")
            assert f"the dataset 'baskets' of north has kind = \"{kind}\"" in error.value.message
            assert f'partition = "{other}" needs kind = ' in error.value.message
    finally:
        store.close(), ledger.close()
