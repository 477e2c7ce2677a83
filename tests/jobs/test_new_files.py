"""Job files and federation files that commands write: each is whole, and explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.federation import Federation
from jobs.kinds.key import Key
from jobs.kinds.packages import BUILT_IN
from jobs.kinds.registry import kind_of
from jobs.loading import load_job
from jobs.new_federation import render as render_federation
from jobs.new_job import key_of, render
from tests.errors import fails

IMPOSSIBLE = Key("rules", "hybrid", "blended")  # which its kind refuses, with the reason
PARTIES = ("north", "south", "east")


@pytest.mark.parametrize("key", [key for key in BUILT_IN if key != IMPOSSIBLE], ids=" ".join)
@pytest.mark.parametrize("parties", [PARTIES, PARTIES[:2]], ids=len)
def test_a_job_of_every_kind_is_written_and_read(tmp_path: Path, key: Key, parties: tuple[str, ...]) -> None:
    text, kind = render(key, parties, "mine")
    (tmp_path / "items.txt").write_text("bread\nbutter\nmilk\n")
    (tmp_path / "job.toml").write_text(text)
    spec = load_job(tmp_path / "job.toml")
    assert (spec.job.task, spec.job.partition, spec.privacy.model) == key
    assert (spec.job.parties, spec.job.dataset) == (parties, "mine")
    assert kind_of(spec) is kind
    assert all("  # " in line or "= " in line or not line or line[0] in "#[" for line in text.splitlines())


def test_the_first_partition_of_a_task_is_taken() -> None:
    assert key_of("rules", None, "exact").partition == "horizontal"
    assert key_of("align", None, "exact").partition == "vertical"
    assert key_of("itemsets", None, "shuffle").partition == "hybrid"


@pytest.mark.parametrize(
    ("task", "partition", "model"),
    [
        ("riches", None, "exact"),
        ("rules", "sideways", "exact"),
        ("align", None, "local"),
        ("rules", "vertical", "local"),
    ],
)
def test_what_no_kind_does_is_refused(task: str, partition: str | None, model: str) -> None:
    with fails("E001"):
        key_of(task, partition, model)


def test_a_job_has_several_parties() -> None:
    with fails("E001"):
        render(Key("rules", "horizontal", "exact"), ("north",), "mine")


def test_a_federation_is_written_and_read(tmp_path: Path) -> None:
    (tmp_path / "federation.toml").write_text(
        render_federation('the "north"', {"north": "north.example:7101", "south": "[::1]:7102"}, "analyst")
    )
    found = Federation.load(tmp_path / "federation.toml")
    assert found.addresses == {"north": "north.example:7101", "south": "[::1]:7102"}
    assert found.coordinator is not None
    assert found.coordinator.key == tmp_path / "pki/analyst.key"


@pytest.mark.parametrize(("party", "address"), [("North Pole", "a:1"), ("north", "north.example")])
def test_impossible_members_are_refused(party: str, address: str) -> None:
    with fails("E100"):
        render_federation("f", {party: address}, "analyst")
