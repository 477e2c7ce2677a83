"""What a union may cost is limited by public numbers alone, and a plan says how it grows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.alignment.costs import AlignmentSizes
from crypto.protocols.union.size_classes import LISTS
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.plan.answer import SetSize
from jobs.plan.estimate import estimate
from jobs.plan.prices import row_union_s
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from jobs.union_limit import MOST_PLACES, MOST_UNBOUNDED
from tests.errors import fails
from tests.examples import slowly
from tests.jobs.plan.answers import SPEED, answer, weekly

MANY = tuple(f"p{number}" for number in range(MOST_UNBOUNDED + 1))
CATALOGUE = {"universe": "the catalogue", "catalogue": ["a", "b"], "strategy": "level-wise"}


def vertical(parties: tuple[str, ...], mode: str, bound: int | None = None) -> JobSpec:
    align = {"mode": mode} | ({} if bound is None else {"bound": bound})
    named = {"name": "j", "task": "align", "parties": [*parties], "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, "align": align}, "the test", Path())


def _takes_unions(spec: JobSpec) -> bool:
    found = kind_of(spec).unions(spec)
    return found.taken and found.squared


HIDDEN = {"universe": "hidden"}


@pytest.mark.parametrize("options", [HIDDEN, {"universe": "hidden-all"}])
def test_many_parties_need_a_bound(options: dict[str, Any]) -> None:
    with fails("E100"):
        weekly(MANY, **options)
    assert _takes_unions(weekly(MANY, bound=64, **options))
    assert _takes_unions(weekly(MANY[:-1], **options))
    with fails("E100"):
        vertical(MANY, "union")
    vertical(MANY, "union", 64)


def test_what_takes_no_union_of_all_lists_needs_no_bound() -> None:
    assert not _takes_unions(weekly(MANY, **CATALOGUE))
    for mode in ("intersection", "cardinality"):
        vertical(MANY, mode)
        vertical(MANY, mode, 10_000_000)
    for options in ({}, {"universe": "all-items"}, {"strategy": "one-shot"}, {**CATALOGUE, "thin": True}):
        assert not _takes_unions(weekly(MANY, **options))


@given(st.integers(2, 64), st.integers(1, 1 << 24))
def test_lists_of_all_parties_have_a_limit(number: int, bound: int) -> None:
    parties = tuple(f"p{place}" for place in range(number))
    total = number * LISTS.rounded(bound)
    for make in (lambda: weekly(parties, bound=bound, **HIDDEN), lambda: vertical(parties, "union", bound)):
        if total <= MOST_PLACES:
            make()
        else:
            with fails("E100"):
                make()


def test_no_bound_is_longer_than_a_list_can_be() -> None:
    vertical(MANY[:2], "intersection", 1 << 24)
    for make in (lambda: vertical(MANY[:2], "intersection", (1 << 24) + 1), lambda: weekly(bound=(1 << 24) + 1)):
        with fails("E100"):
            make()


def test_a_node_refuses_what_a_coordinator_did_not() -> None:
    spec = weekly(MANY, bound=64, **HIDDEN)
    forged = spec.model_copy(update={"union": spec.union.model_copy(update={"bound": None})})
    with fails("E100"):
        job_from_canonical(forged.canonical())


@pytest.mark.parametrize("numbers", slowly([[8, 16, 32], [32, 64]], now=[0]), ids=str)
def test_a_plan_says_what_unions_take_of_all_machines(numbers: list[int]) -> None:
    """Twice the parties: four times as many pairs, which take turns."""
    works = []
    for number in numbers:
        parties = tuple(f"p{place}" for place in range(number))
        plan = estimate(
            weekly(parties, bound=8, strategy="level-wise", **HIDDEN),
            {n: answer(n, items=6) for n in parties},
            0.001,
        )
        (line,) = (each for each in plan.assumptions if each.startswith("Unions take"))
        assert f"of all {number} together" in line
        assert "square" in line
        works.append(row_union_s(AlignmentSizes.of(dict.fromkeys(parties, 6), 0, 8), dict.fromkeys(parties, SPEED)))
    for fewer, twice in pairwise(works):
        assert twice / fewer == pytest.approx(4, rel=0.15)
    plan = estimate(weekly(**CATALOGUE), {n: answer(n) for n in ("north", "south", "east")}, 0.001)
    assert not any("Unions" in line for line in plan.assumptions)


def test_a_plan_says_what_it_costs_to_hide_all_names() -> None:
    """All items of every party are aligned, not the frequent ones alone."""

    def said(universe: str) -> float:
        held = {name: answer(name, items=30_000) for name in ("north", "south", "east")}
        for name, each in held.items():
            few = replace(each.sizes, items=SetSize(100, 1, 0.1))  # type: ignore[type-var]
            held[name] = replace(each, sizes=few)
        plan = estimate(weekly(universe=universe, strategy="level-wise"), held, 0.001)
        (line,) = (each for each in plan.assumptions if each.startswith("Unions take"))
        return float(line.split()[4])

    assert said("hidden") > 20 * said("frequent-items")
