"""The form of a job: the file that it makes is that of `comine job new`, and names no file of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.console.compose import read_job
from coordinator.console.form import fields_of, written
from jobs.kinds.key import Key
from jobs.kinds.packages import BUILT_IN
from jobs.loading import job_of
from jobs.new_job import render
from jobs.report.job_file import job_file
from jobs.spec.toml import parse_toml
from tests.errors import fails
from tests.examples import slowly

PARTIES = ("north", "south", "east")
ITEMS = ["bread", "milk", "tea"]
KEYS = [key for key in BUILT_IN if key[::2] != ("rules", "blended")]  # which finds single items alone


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    (tmp_path / "items.txt").write_text("\n".join(ITEMS))
    return tmp_path


@pytest.mark.parametrize("keys", slowly([(KEYS[place::6],) for place in range(6)], now=[0]))
def test_a_form_as_it_is_makes_the_job_of_the_command(keys: list[Key], catalogue: Path) -> None:
    for key in keys:
        check_form(key, catalogue)


def check_form(key: Key, catalogue: Path) -> None:
    contents = parse_toml(render(key, PARTIES, "baskets")[0].encode(), "job.toml")
    meant = job_of(contents, "job.toml", catalogue)
    form = {field.name: field.value for field in fields_of(key, PARTIES, "baskets")}
    if "universe" in contents.get("itemsets", {}):
        form["itemsets.catalogue"] = "milk\r\nbread\n\ntea\nmilk"
    made = read_job(written(key, PARTIES, form))
    assert made.digest == meant.digest
    assert read_job(job_file(made, whole=True)).digest == made.digest


def test_what_is_filled_in_is_written_as_toml_has_it() -> None:
    key = Key("rules", "horizontal", "exact")
    form = {
        **{field.name: field.value for field in fields_of(key, PARTIES, "baskets")},
        "job.name": 'the "weekly" \\ one',
        "itemsets.min_support": " 25 ",
        "itemsets.exclude": "bag*, ,tea",
        "rules.measures": "lift",
    }
    job = read_job(written(key, PARTIES, form))
    assert job.job.name == 'the "weekly" \\ one'
    assert job.itemsets_ is not None
    assert (job.itemsets_.min_support, job.itemsets_.exclude) == (25, ("bag*", "tea"))
    with fails("E100"):
        read_job(written(key, PARTIES, {**form, "itemsets.min_support": "0,25"}))


@pytest.mark.parametrize(
    "lines",
    [
        '[itemsets]\nmin_support = 2\nuniverse = "pki/analyst.key"',
        '[itemsets]\nmin_support = 2\nuniverse = "/etc/passwd"',
        '[anonymize.hierarchies]\nage = "/etc/passwd"',
        '[anonymize.hierarchies]\nage = { builder = "file", file = "/etc/passwd" }',
    ],
)
def test_a_job_from_a_browser_reads_no_file(lines: str) -> None:
    job = '[job]\nname = "a"\ntask = "itemsets"\nparties = ["north", "south"]\ndataset = "baskets"\n'
    with fails("E100") as caught:
        read_job(job + lines)
    assert "the console reads no files" in caught.value.message
