"""What people are shown of a job's parameters, and that the signed specification is left as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.report.content import shown_parameters
from jobs.report.parameters import parameters
from jobs.spec.job import JobSpec

PARTIES = ["north", "south", "east"]
PRIVACY = {"model": "distributed", "epsilon": "2", "delta": "1e-6"}


def job(*, itemsets: dict[str, Any] | None = None, trust: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    privacy = {"privacy": changes.pop("privacy")} if "privacy" in changes else {}
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": PARTIES, "dataset": "baskets", **changes},
        "itemsets": {"min_support": 2, **(itemsets or {})},
        "trust": trust or {},
        **privacy,
    }
    return job_of(contents, "the test", Path())


def test_what_is_of_columns_only_is_not_shown_of_rows() -> None:
    shown = parameters(job())
    assert not {"engine", "cuts", "quantiles"} & shown["itemsets"].keys()
    assert "helper" not in shown["trust"]
    assert "strategy" in shown["itemsets"]
    assert parameters(job(trust={"helper": "east"}))["trust"] == {"compute": ["north", "south"], "helper": "east"}
    assert parameters(job(trust={"helper": "auto"}))["trust"]["helper"] == "east"
    shown = parameters(job(partition="vertical", itemsets={"cuts": {"age": [40]}}))
    assert (shown["itemsets"]["engine"], shown["itemsets"]["cuts"]) == ("auto", {"age": ["40"]})
    assert shown["trust"]["helper"] == "none"


@pytest.mark.parametrize(
    ("spec", "compute"),
    [
        (job(), ["north", "south"]),
        (job(trust={"compute": ["east", "south"]}), ["east", "south"]),
        (job(itemsets={"disclose": "candidates"}), None),
        (job(partition="hybrid", privacy=PRIVACY), None),
        (job(partition="vertical"), ["north", "south"]),
        (job(partition="vertical", itemsets={"disclose": "candidates", "engine": "paillier"}), None),
    ],
)
def test_who_computes_is_shown_wherever_sums_stay_shared(spec: JobSpec, compute: list[str] | None) -> None:
    before = spec.canonical()
    assert kind_of(spec).shares(spec) is (compute is not None)
    assert parameters(spec)["trust"].get("compute") == compute
    assert shown_parameters(spec)["trust"].get("compute") == compute
    assert spec.canonical() == before


def test_lists_too_long_for_a_table_are_not_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("bread\nmilk\n")
    contents = job().model_dump(mode="json", by_alias=True) | {"itemsets": {"min_support": 2, "universe": "items.txt"}}
    spec = job_of(contents, "the test", tmp_path)
    assert parameters(spec)["itemsets"]["catalogue"] == ["bread", "milk"]
    assert "catalogue" not in shown_parameters(spec)["itemsets"]
