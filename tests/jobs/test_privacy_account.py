"""What a job may cost a record at most, from its specification."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.charge import charge
from jobs.loading import job_of
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec

SIX = Decimal("1e-6")


def job(**privacy: Any) -> JobSpec:
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets",
            "parties": ["north", "south", "east"],
            "dataset": "baskets",
            "partition": "hybrid",
        },
        "itemsets": {"min_support": Decimal("0.01"), "max_length": 1, "universe": "items", "catalogue": ["a", "b"]},
        "privacy": privacy,
    }
    return job_of(contents, "job.toml", Path())


@pytest.mark.parametrize(
    ("privacy", "expected"),
    [
        ({"model": "exact"}, Charge("exact", None, None, None)),
        ({"model": "local", "epsilon": "0.1"}, Charge("local", Decimal("0.1"), Decimal("0.1"), Decimal(0))),
        (
            {"model": "shuffle", "epsilon": "1", "delta": "1e-6"},
            Charge("shuffle", Decimal(8), Decimal(1), SIX),
        ),
        (
            {"model": "shuffle", "epsilon": "1", "delta": "1e-6", "local_epsilon": "2.5"},
            Charge("shuffle", Decimal("2.5"), Decimal(1), SIX),
        ),
        ({"model": "distributed", "epsilon": "2", "delta": "1e-6"}, Charge("distributed", None, Decimal(2), SIX)),
        (
            {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["south"]},
            Charge("blended", Decimal(2), Decimal(2), SIX),
        ),
    ],
)
def test_what_each_model_is_charged(privacy: dict[str, Any], expected: Charge) -> None:
    assert charge(job(**privacy)) == expected


def test_jobs_without_a_privacy_table_are_exact() -> None:
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"},
        "itemsets": {"min_support": 5},
    }
    assert charge(job_of(contents, "job.toml", Path())) == Charge("exact", None, None, None)


def test_decimals_stay_exact() -> None:
    assert str(charge(job(model="local", epsilon="0.30000000000000004")).epsilon) == "0.30000000000000004"
