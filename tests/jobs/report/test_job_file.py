"""The job as the report writes it: pasted into a file, it is the same job."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.loading import job_of, load_job
from jobs.report.job_file import job_file
from mining.rules.measure_names import MEASURE_NAMES

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
SHARES = st.integers(1, 9).flatmap(lambda places: st.decimals("0", "0.999", places=places).filter(bool))


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    rules = draw(st.booleans())
    parties = draw(st.lists(st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True), min_size=2, max_size=4, unique=True))
    found: dict[str, Any] = {
        "job": {
            "name": draw(TEXTS),
            "task": "rules" if rules else "itemsets",
            "parties": parties,
            "dataset": draw(TEXTS),
            "recipients": draw(st.sampled_from([["coordinator"], ["all"], parties])),
            "deadline": draw(st.sampled_from(["90s", "30m", "2h"])),
        },
        "itemsets": {
            "min_support": draw(st.integers(1, 10**9) | SHARES | st.just("1") | st.just("1E-7")),
            "strategy": draw(st.sampled_from(["auto", "level-wise", "one-shot"])),
            "thin": draw(st.booleans()),
            "lambda": str(draw(SHARES)),
            "exclude": draw(st.lists(TEXTS, max_size=2, unique=True)),
        },
    }
    if draw(st.booleans()):
        found["itemsets"]["max_length"] = draw(st.integers(1, 9))
        found["union"] = {"bound": draw(st.integers(1, 10**5))}
    if rules:
        measures = draw(st.lists(st.sampled_from(MEASURE_NAMES), max_size=3, unique=True))
        found["rules"] = {"min_confidence": draw(SHARES | st.sampled_from([0, 1, "1.0"])), "measures": measures}
    return found


@given(contents())
def test_it_reads_again_as_the_same_job(given: dict[str, Any]) -> None:
    spec = job_of(given, "the test", Path())
    written = job_file(spec)
    with_decimals = tomllib.loads(written, parse_float=Decimal)
    assert job_of(with_decimals, "the report", Path()).digest == spec.digest


COLUMNS = TEXTS.filter(lambda name: "=" not in name)
CUTS = st.lists(st.decimals(-999, 999, places=2) | st.integers(-9, 9).map(Decimal), min_size=1, unique=True).map(sorted)


@given(st.dictionaries(COLUMNS, CUTS, max_size=3), st.booleans(), st.booleans())
def test_a_vertical_job_reads_again_as_the_same_job(cuts: dict[str, list[Decimal]], trim: bool, mines: bool) -> None:
    job = {"name": "columns", "parties": ["north", "south"], "dataset": "people", "partition": "vertical"}
    contents: dict[str, Any] = {"job": {**job, "task": "itemsets" if mines else "align"}, "align": {"trim": trim}}
    if mines:
        contents["itemsets"] = {"min_support": 2, "cuts": cuts, "quantiles": {"pay, yearly": 4}, "engine": "ot"}
    spec = job_of(contents, "the test", Path())
    again = job_of(tomllib.loads(job_file(spec), parse_float=Decimal), "the report", Path())
    assert again.digest == spec.digest


def test_a_catalogue_is_named_not_written(tmp_path: Path) -> None:
    (tmp_path / "catalogue.txt").write_text("milk\nbread\n")
    job = tmp_path / "job.toml"
    job.write_text(
        '[job]\nname = "x"\ntask = "itemsets"\nparties = ["a", "b"]\ndataset = "d"\n'
        '[itemsets]\nmin_support = 0.010\nuniverse = "catalogue.txt"\n'
    )
    spec = load_job(job)
    written = job_file(spec)
    assert "milk" not in written
    assert "the public catalogue: 2 items" in written
    assert "min_support = 0.010\n" in written
    job.write_text(written)
    assert load_job(job).digest == spec.digest


@pytest.mark.parametrize("name", ["\u202eevil", "\x7f", "\u2028", 'quote" and \\', "\x00\n"])
def test_names_hide_nothing(name: str) -> None:
    spec = job_of(
        {
            "job": {"name": name, "task": "itemsets", "parties": ["a", "b"], "dataset": "d"},
            "itemsets": {"min_support": 1},
        },
        "the test",
        Path(),
    )
    written = job_file(spec)
    assert all(character.isprintable() or character == "\n" for character in written)
    assert tomllib.loads(written)["job"]["name"] == name
