"""How what a dataset has spent came about ends at what the command says."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from pathlib import Path

import pytest

from jobs.privacy_account import Charge
from party.config import PartyConfig
from party.policy.budget import MOST_MOMENTS, budget, course
from party.policy.privacy_budget import amounts_of
from party.state.ledger import Entry, Ledger
from party.state.node_database import FILE
from tests.party.files import write_federation

DAY = 86_400.0
COST = Charge("central", None, Decimal("0.1"), Decimal("1e-8"))


@pytest.mark.parametrize("more", ["", 'period = "7d"\n', 'composition = "optimal"\n'])
def test_it_ends_at_what_is_spent_now(tmp_path: Path, more: str) -> None:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    (tmp_path / "state" / "north").mkdir(parents=True)
    with (tmp_path / "north.toml").open("a") as file:
        file.write(f"[dataset.privacy]\nepsilon = 9\ndelta = 1e-5\n{more}")
    config = PartyConfig.load(tmp_path / "north.toml")
    days = MOST_MOMENTS + 5
    database = config.party.state_dir / FILE
    with contextlib.closing(Ledger.open(database)) as ledger:
        for day in range(days):
            ledger.record(Entry(day.to_bytes(32, "big"), 1, day * DAY, "baskets", "weekly", "analyst", COST))
        moments = course(config, ledger, "baskets", days * DAY)
        (found,) = budget(config, ledger, "baskets", days * DAY).datasets
    assert [each.at for each in moments] == [day * DAY for day in range(5, days + 1)]
    assert amounts_of(moments[-1].spent) == found.spent
    if not more:
        assert [each.spent.epsilon for each in moments[:2]] == [Decimal("0.6"), Decimal("0.7")]
