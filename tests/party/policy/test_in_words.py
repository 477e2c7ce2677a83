"""The rules that hold for a dataset are told as they are written, and those that hold unwritten."""

from __future__ import annotations

from pathlib import Path

from party.config import PartyConfig
from party.policy.in_words import rules
from tests.party.files import write_federation

TABLES = """[dataset.policy]
min_support = 0.3
withhold = ["milk*"]
[[dataset.policy.approval]]
decide = "manual"
tasks = ["rules"]
[dataset.privacy]
epsilon = 4
delta = 1e-6
"""


def test_rules_are_told_with_where_they_are_written(tmp_path: Path) -> None:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    with (tmp_path / "north.toml").open("a") as file:
        file.write(TABLES)
    found = {rule.key: rule for rule in rules(PartyConfig.load(tmp_path / "north.toml"), "baskets")}
    assert found["min_support"][1:] == (
        "0.3",
        "The lowest support that a job may ask for, as a fraction.",
        "[dataset.policy]",
    )
    assert found["approval"].value == "(decide: manual; tasks: rules)"
    assert (found["withhold"].value, found["approve"].table) == ("milk*", "[policy]")
    assert (found["max_failed_releases"].value, found["max_failed_releases"].table) == ("20", "")
    assert (found["epsilon"].value, found["epsilon"].table) == ("4", "[dataset.privacy]")
    assert "max_jobs" not in found
    assert all(rule.meaning for rule in found.values())
