"""A job file is read exactly, or refused with one sentence that names the key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.alignment.kind import Alignment
from jobs.kinds.columns.parameters import vertical_mining
from jobs.kinds.registry import kind_of
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from jobs.statement import statement
from mining.data.items.item_columns import Itemisation
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


def verified(**sections: Any) -> JobSpec:
    """A job over rows that holds where parties deviate."""
    job = {"name": "rows", "task": "itemsets", "parties": ["north", "south", "east"], "dataset": "baskets"}
    itemsets = {"min_support": 2, "universe": "a file", "catalogue": ["a", "b"], **sections.pop("itemsets", {})}
    trust = {"helper": "east", "security": "malicious", **sections.pop("trust", {})}
    job |= sections.pop("job", {})
    return job_of({"job": job, "itemsets": itemsets, "trust": trust, **sections}, "job.toml", Path())


def test_the_bytes_of_a_semi_honest_job_are_those_of_before_there_were_others() -> None:
    assert b"security" not in read().canonical()
    plain = verified(trust={"security": "semi-honest"})
    assert b"security" not in plain.canonical()
    assert b'"security":"malicious"' in verified().canonical()
    assert "malicious: one of north, south and east" in statement(verified()).adversary
    assert statement(plain).adversary.startswith("semi-honest")


@pytest.mark.parametrize("helper", ["none", "auto"])
def test_two_parties_may_compute_by_themselves_where_one_may_deviate(helper: str) -> None:
    two = verified(job={"parties": ["north", "south"]}, trust={"helper": helper})
    assert horizontal_mining(two).computing == ("north", "south")
    adversary = statement(two).adversary
    assert "malicious: one of north and south may do what they like" in adversary
    assert "goes unnoticed with probability 2^-40 for each block of a batch" in adversary
    one = verified(job={"recipients": ["east"]}, trust={"helper": "none"}, itemsets={"disclose": "frequent"})
    assert "one of north and south, and any parties that do not compute, may" in statement(one).adversary
    assert "these two together could learn the third party's count" in statement(one).collusion
    assert "union" not in statement(one).collusion  # none is taken: the catalogue is public


def test_what_parties_that_may_deviate_bring_to_unions_is_stated() -> None:
    bring = ", and what they bring to unions"
    assert bring not in statement(verified()).adversary
    united = verified(itemsets={"universe": "frequent-items", "catalogue": None})
    assert bring in statement(united).adversary
    assert "of the unions, any two of them together could learn what each party brings" in statement(united).collusion
    four = verified(job={"parties": ["north", "south", "east", "west"]})
    assert "any two of these three together could learn each other party's count" in statement(four).collusion
    assert "each other's count" in statement(four).worst


@pytest.mark.parametrize(
    "sections",
    [
        {"trust": {"helper": "none"}, "itemsets": {"universe": "frequent-items", "catalogue": None}},
        {"trust": {"helper": "none"}, "itemsets": {"strategy": "one-shot"}},
        {"trust": {"helper": "none"}, "itemsets": {"thin": True}},
        {"trust": {"helper": "none"}, "job": {"recipients": ["east"]}},
        {"itemsets": {"universe": "hidden-all", "catalogue": None}},
        {"itemsets": {"universe": "auto", "catalogue": None, "prefer": "disclosure"}},
        {"itemsets": {"disclose": "candidates"}},
        {"itemsets": {"disclose": "candidates"}, "trust": {"helper": "auto"}},
        {"job": {"task": "rules"}, "itemsets": {"disclose": "frequent"}, "rules": {"min_confidence": "0.5"}},
    ],
)
def test_what_is_not_checked_is_refused_where_parties_may_deviate(sections: dict[str, Any]) -> None:
    with fails("E100"):
        verified(**sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"itemsets": {"strategy": "one-shot"}},
        {"itemsets": {"prefer": "speed"}},
        {"itemsets": {"thin": True}},
        {"itemsets": {"universe": "all-items"}},
        {"itemsets": {"lambda": "0.5"}},
        {"itemsets": {"union": "all"}},
        {"itemsets": {"catalogue": ["a"]}},
        {"union": {"bound": 5}},
        {"itemsets": {"cuts": {"age": [40, 18]}}},
        {"itemsets": {"cuts": {"age": [18, 18]}}},
        {"itemsets": {"cuts": {"age": ["NaN"]}}},
        {"itemsets": {"cuts": {"age": []}}},
        {"itemsets": {"cuts": {"a=b": [1]}}},
        {"itemsets": {"quantiles": {"age": 1}}},
        {"itemsets": {"cuts": {"age": [1]}, "quantiles": {"age": 2}}},
        {"align": {"mode": "join"}},
        {"align": {"case": "lower"}},
        {"align": {"mode": "cardinality"}},
        {"trust": {"helper": "west"}},
        {"trust": {"security": "malicious"}},
        {"trust": {"helper": "south"}},
        {"trust": {"helper": "coordinator"}, "itemsets": {"engine": "ot"}},
        {"job": {"task": "align"}, "itemsets": {"min_support": 2}},
        {"job": {"task": "align", "partition": "horizontal"}},
        {"job": {"partition": "horizontal"}, "align": {}},
        {"job": {"partition": "horizontal"}, "itemsets": {"engine": "ot"}},
        {"job": {"partition": "horizontal"}, "itemsets": {"cuts": {"a": [1]}}},
        {"job": {"partition": "horizontal"}, "trust": {"helper": "coordinator"}},
        {
            "job": {"partition": "horizontal", "parties": ["north", "south", "east"]},
            "itemsets": {"disclose": "candidates"},
            "trust": {"helper": "east"},
        },
        {"job": {"partition": "other"}},
        {"privacy": {"model": "exact"}},
        {"privacy": {"model": "distributed", "epsilon": "1", "delta": "1e-6"}},
    ],
)
def test_what_means_nothing_is_refused(sections: dict[str, dict[str, Any]]) -> None:
    with fails("E100"):
        vertical(**sections)


def test_a_task_needs_its_table() -> None:
    given = contents(job={"task": "itemsets"})
    del given["itemsets"], given["rules"]
    with fails("E100"):
        job_of(given, "job.toml", Path())


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("rules", {"measures": ["lft"]}),
        ("rules", {"measures": ["lift", "lift"]}),
        ("rules", {"min_confidence": "1.5"}),
        ("itemsets", {"catalogue": ["b", "a"]}),
        ("itemsets", {"catalogue": ["a", "a"]}),
        ("itemsets", {"catalogue": []}),
        ("itemsets", {"exclude": ["a*", "b", "a*"]}),
        ("itemsets", {"exclude": [""]}),
        ("itemsets", {"exclude": "a*"}),
        ("itemsets", {"min_support": "1E-99999999"}),
        *(("itemsets", {"min_support": number}) for number in ("NaN", "-Infinity", "80", "150.5")),
        *(("rules", {"min_confidence": number}) for number in ("NaN", "Infinity", "80")),
        ("itemsets", {"lambda": "1"}),
        ("itemsets", {"disclose": "all"}),
        ("trust", {"compute": ["north", "north"]}),
        ("trust", {"compute": ["north", "west"]}),
        ("trust", {"compute": ["north"]}),
        ("trust", {"helper": "south"}),
        ("job", {"parties": ["north", "North"]}),
        ("job", {"parties": ["north", "north"]}),
        ("job", {"recipients": ["west"]}),
        ("job", {"recipients": "west"}),
        ("job", {"recipients": []}),
        ("job", {"recipients": ["south", "all", "south"]}),
        ("job", {"recipients": 3}),
        ("job", {"deadline": "soon"}),
        ("job", {"bogus": 1}),
    ],
)
def test_what_is_wrong_is_said(section: str, values: dict[str, Any]) -> None:
    with fails("E100"):
        read(**{section: values})
