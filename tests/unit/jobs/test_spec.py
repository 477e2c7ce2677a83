"""A job file is read exactly, or refused with one sentence that names the key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.spec import JobSpec
from link.errors import ConfigurationError


def contents(**sections: dict[str, Any]) -> dict[str, Any]:
    job = {"name": "weekly", "task": "rules", "parties": ["north", "south"], "dataset": "baskets"}
    base: dict[str, Any] = {
        "job": job,
        "itemsets": {"min_support": Decimal("0.01")},
        "rules": {"min_confidence": "0.5"},
    }
    return {name: {**base.get(name, {}), **sections.get(name, {})} for name in {*base, *sections}}


def read(**sections: dict[str, Any]) -> JobSpec:
    return JobSpec.of(contents(**sections), "job.toml", Path())


def test_the_canonical_form_is_read_back() -> None:
    spec = read(itemsets={"catalogue": ["a", "b"]}, rules={"measures": ["lift", "zhang"]})
    assert JobSpec.from_canonical(spec.canonical()) == spec


def test_a_fraction_and_a_count_are_told_apart() -> None:
    assert read(itemsets={"min_support": Decimal("1.0")}).itemsets.min_support == Decimal(1)
    one = read(itemsets={"min_support": 1})
    assert isinstance(one.itemsets.min_support, int)
    assert one.digest != read(itemsets={"min_support": Decimal("1.0")}).digest


def test_the_job_id_differs_between_runs_of_one_file() -> None:
    spec = read()
    assert len({spec.job_id(bytes(16), 1), spec.job_id(bytes(16), 2), spec.job_id(b"x" * 16, 1)}) == 3


@pytest.mark.parametrize(
    ("section", "values", "sentence"),
    [
        ("rules", {"measures": ["lft"]}, "[rules] measures: there is no measure 'lft'; there are confidence, lift"),
        ("rules", {"measures": ["lift", "lift"]}, "the measure 'lift' is named twice"),
        ("rules", {"min_confidence": "1.5"}, "[rules] min_confidence: 1.5 must be between 0 and 1"),
        ("itemsets", {"catalogue": ["b", "a"]}, "a catalogue names items once each, in ascending order"),
        ("itemsets", {"catalogue": ["a", "a"]}, "a catalogue names items once each"),
        ("itemsets", {"catalogue": []}, "at least one"),
        ("itemsets", {"exclude": ["a*", "b", "a*"]}, "[itemsets] exclude: the pattern 'a*' is listed twice"),
        ("itemsets", {"exclude": [""]}, "[itemsets.exclude] 0: "),
        ("itemsets", {"exclude": "a*"}, "[itemsets] exclude: must be a list"),
        ("itemsets", {"min_support": "1E-99999999"}, "[itemsets] min_support:"),
        ("itemsets", {"lambda": "1"}, "[itemsets] lambda: 1 must be at least 0 and below 1"),
        ("itemsets", {"disclose": "frequent"}, "needs secure comparison"),
        ("job", {"parties": ["north", "North"]}, "is not a name: use 1 to 63 lower-case letters"),
        ("job", {"parties": ["north", "north"]}, "the party 'north' is named twice"),
        ("job", {"recipients": ["west"]}, "the recipient 'west' is neither"),
        ("job", {"deadline": "soon"}, "must be a duration such as"),
        ("job", {"bogus": 1}, "[job] bogus: is not a known key"),
    ],
)
def test_what_is_wrong_is_said(section: str, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(**{section: values})
    assert sentence in error.value.message
    assert "\n" not in error.value.message
