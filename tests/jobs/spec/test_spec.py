"""A job file is read exactly, or refused with one sentence that names the key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.alignment.kind import Alignment
from jobs.kinds.columns.parameters import vertical_mining
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from mining.data.item_columns import Itemisation
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation
from tests.errors import fails


def contents(**sections: dict[str, Any]) -> dict[str, Any]:
    job = {"name": "weekly", "task": "rules", "parties": ["north", "south"], "dataset": "baskets"}
    base: dict[str, Any] = {
        "job": job,
        "itemsets": {"min_support": Decimal("0.01")},
        "rules": {"min_confidence": "0.5"},
    }
    return {name: {**base.get(name, {}), **sections.get(name, {})} for name in {*base, *sections}}


def read(**sections: dict[str, Any]) -> JobSpec:
    return job_of(contents(**sections), "job.toml", Path())


def test_the_canonical_form_is_read_back() -> None:
    spec = read(itemsets={"catalogue": ["a", "b"]}, rules={"measures": ["lift", "zhang"]})
    assert job_from_canonical(spec.canonical()) == spec


def test_the_computing_parties_are_the_first_two_or_those_that_are_named() -> None:
    assert read().compute == read().job.parties[:2]
    assert read(trust={"compute": ["south", "north"]}).compute == ("south", "north")


@pytest.mark.parametrize("name", ["all", "coordinator", "south"])
def test_a_single_recipient_needs_no_list(name: str) -> None:
    alone = read(job={"recipients": name})
    assert alone.job.recipients == (name,)
    assert alone.digest == read(job={"recipients": [name]}).digest


def test_a_result_without_numbers_has_no_measures() -> None:
    with fails("E100"):
        read(itemsets={"disclose": "frequent"}, rules={"measures": ["lift"]})


def test_a_fraction_and_a_count_are_told_apart() -> None:
    assert read(itemsets={"min_support": Decimal("1.0")}).itemsets.min_support == Decimal(1)
    one = read(itemsets={"min_support": 1})
    assert isinstance(one.itemsets.min_support, int)
    assert one.digest != read(itemsets={"min_support": Decimal("1.0")}).digest


def test_the_job_id_differs_between_runs_of_one_file() -> None:
    spec = read()
    assert len({spec.job_id(bytes(16), 1), spec.job_id(bytes(16), 2), spec.job_id(b"x" * 16, 1)}) == 3


def vertical(**sections: dict[str, Any]) -> JobSpec:
    job = {"name": "columns", "task": "itemsets", "parties": ["north", "south"], "dataset": "people"}
    job |= {"partition": "vertical", **sections.pop("job", {})}
    itemsets = {} if job["task"] == "align" else {"itemsets": {"min_support": 2, **sections.pop("itemsets", {})}}
    return job_of({"job": job, **itemsets, **sections}, "job.toml", Path())


def test_a_vertical_job_says_how_rows_are_aligned_and_cells_become_items() -> None:
    spec = vertical(
        itemsets={"cuts": {"age": [18, Decimal("40.50")]}, "quantiles": {"income": 4}, "exclude": ["name=*"]},
        align={"mode": "union", "trim": True, "case": "fold", "unicode": "NFC", "bound": 1000},
        trust={"helper": "coordinator"},
    )
    assert job_from_canonical(spec.canonical()) == spec
    task = vertical_mining(spec)
    assert (task.mode, task.bound, task.helper, task.engine) == ("union", 1000, "coordinator", "auto")
    assert task.normalisation == IdNormalisation(trim=True, case="fold", unicode="NFC")
    how = Itemisation({"age": (Decimal(18), Decimal("40.50"))}, {"income": 4}, ("name=*",))
    assert task.itemisation == how


def test_by_default_rows_are_intersected_and_nobody_helps() -> None:
    task = vertical_mining(vertical())
    assert (task.mode, task.normalisation, task.itemisation) == ("intersection", AS_THEY_ARE, Itemisation())
    assert (task.helper, task.bound, task.rules) == (None, None, None)
    two = vertical(itemsets={"engine": "replicated"})
    assert vertical_mining(two).helper == "coordinator"
    three = vertical(job={"parties": ["north", "south", "east"]}, itemsets={"engine": "replicated"})
    assert vertical_mining(three).helper is None


def test_rows_are_aligned_without_mining() -> None:
    spec = vertical(job={"task": "align"}, align={"mode": "cardinality"})
    assert job_from_canonical(spec.canonical()) == spec
    assert isinstance(kind_of(spec), Alignment)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (
            {"itemsets": {"strategy": "one-shot"}},
            '[itemsets] strategy means nothing with task = "itemsets" and partition = "vertical"',
        ),
        ({"itemsets": {"prefer": "speed"}}, "[itemsets] prefer means nothing"),
        ({"itemsets": {"thin": True}}, "[itemsets] thin means nothing"),
        ({"itemsets": {"universe": "all-items"}}, "[itemsets] universe means nothing"),
        ({"itemsets": {"lambda": "0.5"}}, "[itemsets] lambda means nothing"),
        ({"itemsets": {"union": "all"}}, "[itemsets] union means nothing"),
        ({"itemsets": {"catalogue": ["a"]}}, "[itemsets] catalogue means nothing"),
        ({"union": {"bound": 5}}, "[union] bound means nothing"),
        (
            {"itemsets": {"cuts": {"age": [40, 18]}}},
            "[itemsets] cuts: the cuts of 'age' must be numbers in ascending order",
        ),
        ({"itemsets": {"cuts": {"age": [18, 18]}}}, "must be numbers in ascending order"),
        ({"itemsets": {"cuts": {"age": ["NaN"]}}}, "[itemsets.cuts.age] 0: Input should be a finite number"),
        ({"itemsets": {"cuts": {"age": []}}}, "[itemsets.cuts] age: needs at least 1 entry"),
        ({"itemsets": {"cuts": {"a=b": [1]}}}, "no column of a table may be called 'a=b', with an equals sign"),
        ({"itemsets": {"quantiles": {"age": 1}}}, "[itemsets.quantiles] age: "),
        (
            {"itemsets": {"cuts": {"age": [1]}, "quantiles": {"age": 2}}},
            "'age' is in cuts and in quantiles; choose one",
        ),
        ({"align": {"mode": "join"}}, "[align] mode: Input should be 'intersection', 'union' or 'cardinality'"),
        ({"align": {"case": "lower"}}, "[align] case: Input should be 'keep' or 'fold'"),
        ({"align": {"mode": "cardinality"}}, 'it needs task = "align"'),
        ({"trust": {"helper": "west"}}, "\"coordinator\" or a party of the job, not 'west'"),
        ({"trust": {"helper": "south"}}, "with two parties 'south' cannot deal randomness to itself"),
        ({"trust": {"helper": "coordinator"}, "itemsets": {"engine": "ot"}}, "[trust] helper needs [itemsets] engine"),
        (
            {"job": {"task": "align"}, "itemsets": {"min_support": 2}},
            'an [itemsets] table means nothing with task = "align"',
        ),
        ({"job": {"task": "align", "partition": "horizontal"}}, 'task = "align" needs partition = "vertical"'),
        ({"job": {"partition": "horizontal"}, "align": {}}, "an [align] table means nothing with"),
        ({"job": {"partition": "horizontal"}, "itemsets": {"engine": "ot"}}, "[itemsets] engine means nothing"),
        ({"job": {"partition": "horizontal"}, "itemsets": {"cuts": {"a": [1]}}}, "[itemsets] cuts means nothing"),
        ({"job": {"partition": "horizontal"}, "trust": {"helper": "coordinator"}}, "[trust] helper means nothing"),
        ({"job": {"partition": "other"}}, "[job] partition: Input should be 'horizontal', 'vertical' or 'hybrid'"),
        ({"privacy": {"model": "exact"}}, 'a [privacy] table means nothing with task = "itemsets"'),
        (
            {"privacy": {"model": "distributed", "epsilon": "1", "delta": "1e-6"}},
            '[privacy] model = "distributed" needs partition = "horizontal" or "hybrid"',
        ),
    ],
)
def test_what_means_nothing_is_refused(sections: dict[str, dict[str, Any]], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        vertical(**sections)
    assert sentence in error.value.message
    assert "\n" not in error.value.message


def test_a_task_needs_its_table() -> None:
    given = contents(job={"task": "itemsets"})
    del given["itemsets"], given["rules"]
    with fails("E100"):
        job_of(given, "job.toml", Path())


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
        (
            "itemsets",
            {"disclose": "all"},
            "[itemsets] disclose: Input should be 'candidates', 'supports' or 'frequent'",
        ),
        ("trust", {"compute": ["north", "north"]}, "[trust] compute: names two different parties of the job"),
        ("trust", {"compute": ["north", "west"]}, "[trust] compute names two different parties of the job"),
        ("trust", {"compute": ["north"]}, "[trust] compute: names two different parties of the job"),
        ("job", {"parties": ["north", "North"]}, "is not a name: use 1 to 63 lower-case letters"),
        ("job", {"parties": ["north", "north"]}, "the party 'north' is named twice"),
        ("job", {"recipients": ["west"]}, "the recipient 'west' is neither"),
        ("job", {"recipients": "west"}, "the recipient 'west' is neither"),
        ("job", {"recipients": []}, "[job] recipients: needs at least 1 entry"),
        ("job", {"recipients": ["south", "all", "south"]}, "the recipient 'south' is named twice"),
        ("job", {"recipients": 3}, "[job] recipients: must be a list"),
        ("job", {"deadline": "soon"}, "must be a duration such as"),
        ("job", {"bogus": 1}, "[job] bogus: is not a known key"),
    ],
)
def test_what_is_wrong_is_said(section: str, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(**{section: values})
    assert sentence in error.value.message
    assert "\n" not in error.value.message
