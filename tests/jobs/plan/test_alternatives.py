"""The other ways to do a job that a plan shows: their settings, figures and statements are those of the changed job."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.jobs.plan import show_plan
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.kinds.rows.plan_alternatives import variants
from jobs.loading import job_of
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.plan.plan import Alternative, Plan
from jobs.statement import statement
from tests.jobs.plan.answers import PARTIES, answer, answers, weekly

pytestmark = pytest.mark.turn(6)

LATENCY_S = 0.002

JOBS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one-shot": {"strategy": "one-shot"},
    "thinned": {"thin": True, "strategy": "level-wise"},
    "candidates": {"disclose": "candidates"},
    "least": {"prefer": "disclosure", "disclose": "frequent"},
    "most": {"prefer": "speed", "disclose": "candidates"},
    "all items": {"universe": "all-items"},
    "catalogue": {"universe": "the catalogue", "catalogue": ["a", "b", "c"]},
    "single items": {"max_length": 1},
    "rules": {"rules": {"min_confidence": "0.5", "measures": ["lift"]}},
    "rules on shares": {"rules": {"min_confidence": "0.5"}, "disclose": "frequent"},
}


def named(plan: Plan, name: str) -> Alternative:
    return next(each for each in plan.alternatives if each.name == name)


@pytest.mark.parametrize("job", JOBS)
def test_a_variant_is_the_job_with_just_these_settings(job: str) -> None:
    """As if its lines had been written into the job file."""
    spec = weekly(**JOBS[job])
    found = variants(spec)
    assert len({variant.name for variant in found}) == len({variant.spec.digest for variant in found}) == len(found)
    for variant in found:
        contents = json.loads(spec.canonical())
        for line in variant.change:
            if line == "[rules] without measures":
                del contents["rules"]["measures"]
                continue
            table, setting = line.split(" ", 1)
            contents[table.strip("[]")].update(tomllib.loads(setting))
        assert job_of(contents, "the test", Path()) == variant.spec
        assert horizontal_mining(variant.spec) != horizontal_mining(spec)


@pytest.mark.parametrize("job", JOBS)
def test_figures_are_those_of_the_plan_of_the_changed_job(job: str) -> None:
    spec = weekly(**JOBS[job])
    plan = estimate(spec, answers(), LATENCY_S)
    by_name = {variant.name: variant for variant in variants(spec)}
    assert plan.alternatives
    for each in plan.alternatives:
        changed = estimate(by_name[each.name].spec, answers(), LATENCY_S)
        assert (each.strategy, each.rounds) == (changed.strategy, changed.rounds)
        assert (each.seconds, each.bytes_sent) == (changed.seconds, changed.bytes_sent)


@pytest.mark.parametrize("job", JOBS)
def test_sentences_are_those_by_which_the_statements_differ(job: str) -> None:
    spec = weekly(**JOBS[job])
    plan = estimate(spec, answers(), LATENCY_S)
    here = statement(spec).exact_prose()
    by_name = {variant.name: variant for variant in variants(spec)}
    for each in plan.alternatives:
        there = statement(by_name[each.name].spec).exact_prose()
        assert set(each.drops) == set(here) - set(there)
        assert set(each.adds) == set(there) - set(here)
        assert (each.in_short == "the same is disclosed.") is (here == there)


def test_one_change_at_a_time_and_both_ends() -> None:
    names = [variant.name for variant in variants(weekly())]
    assert names == [
        'disclose = "candidates"',
        'disclose = "frequent"',
        'universe = "hidden"',
        "thinned",
        'strategy = "level-wise"',
        'strategy = "one-shot"',
        'helper = "east"',
        "least disclosure",
        "most speed",
    ]
    assert not any("helper" in variant.name for variant in variants(weekly(PARTIES[:2])))
    helped = next(variant.spec for variant in variants(weekly()) if variant.name == 'helper = "east"')
    names = [variant.name for variant in variants(helped)]
    assert 'helper = "none"' in names
    assert 'disclose = "candidates"' not in names  # nothing would be left to help with


def test_a_third_computing_party_saves_bytes_and_the_collusion_is_said() -> None:
    plan = estimate(weekly(disclose="frequent"), answers(), LATENCY_S)
    found = named(plan, 'helper = "east"')
    assert found.bytes_sent is not None
    assert found.bytes_sent < plan.bytes_sent
    assert found.seconds is not None
    assert found.seconds < plan.seconds
    assert "any two of these three together could learn the third party's count" in found.in_short
    assert {variant.name for variant in variants(weekly(**JOBS["catalogue"]))}.isdisjoint(
        {'universe = "hidden"', 'universe = "frequent-items"'}
    )
    assert not any("strategy" in variant.name for variant in variants(weekly(max_length=1)))


def test_less_is_opened_where_less_is_disclosed() -> None:
    spec = weekly(prefer="disclosure", disclose="frequent")
    plan = estimate(weekly(), answers(), LATENCY_S)
    assert [batch.opened for batch in plan.batches] == [20, 30, 5]
    assert all(batch.opened == 0 for batch in estimate(spec, answers(), LATENCY_S).batches)
    assert all(
        batch.opened == batch.candidates
        for batch in estimate(weekly(disclose="candidates"), answers(), LATENCY_S).batches
    )
    least = named(plan, "least disclosure")
    assert least.change == ['[itemsets] prefer = "disclosure"', '[itemsets] disclose = "frequent"']
    assert "the support of every frequent itemset" in least.in_short
    assert any("no support of any itemset" in sentence for sentence in least.adds)


def without_held(answer: Answer) -> Answer:
    """A party that does not publish how many items it has."""
    assert answer.sizes is not None
    return replace(answer, sizes=replace(answer.sizes, held=None))


def test_what_was_not_told_is_not_estimated() -> None:
    told = {name: without_held(each) for name, each in answers().items()}
    plan = estimate(weekly(), told, LATENCY_S)
    assert plan.n_rows == 3000
    for name in (
        'universe = "hidden"',
        "least disclosure",
    ):
        found = named(plan, name)
        assert (found.strategy, found.rounds, found.seconds, found.bytes_sent) == (None, None, None, None)
        assert found.change
        assert found.in_short
    assert named(plan, 'disclose = "frequent"').seconds is not None


def test_parties_that_hide_their_sizes_hide_those_of_the_alternatives() -> None:
    plan = estimate(weekly(), answers(north=None, south=None, east=None), LATENCY_S)
    assert plan.alternatives
    assert all(each.seconds is None for each in plan.alternatives)


def test_what_could_not_run_is_no_alternative() -> None:
    """A confidence of so many digits cannot be decided on shares; the job as written needs no shares for its rules."""
    spec = weekly(rules={"min_confidence": "0.1234567890123456789"})
    names = {each.name for each in estimate(spec, answers(), LATENCY_S).alternatives}
    assert 'disclose = "candidates"' in names
    assert names.isdisjoint({'disclose = "frequent"', "least disclosure"})
    shared = weekly(rules={"min_confidence": "0.1234567890123"}, disclose="frequent")
    assert estimate(shared, answers(south=None), LATENCY_S).parties["north"].bytes_sent_at_most


@pytest.mark.parametrize(
    ("disclose", "which"),
    [("candidates", "every candidate"), ("supports", "every frequent itemset"), ("frequent", None)],
)
def test_two_parties_are_told_what_an_opened_sum_tells(disclose: str, which: str | None) -> None:
    parties = PARTIES[:2]
    told: dict[str, Answer] = {name: answer(name) for name in parties}
    plan = estimate(weekly(parties, disclose=disclose), told, LATENCY_S)
    if which is None:
        assert plan.advice == []
        assert not any("so the other's count of" in sentence for sentence in plan.prose)
    else:
        (line,) = plan.advice
        assert f"counts of {which}" in line
        assert 'disclose = "frequent" opens no sum' in line
        assert any(f"so the other's count of {which}" in sentence for sentence in plan.prose)
    assert estimate(weekly(disclose=disclose), answers(), LATENCY_S).advice == []


def test_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    told = answers()
    told["south"] = without_held(told["south"])
    show_plan(estimate(weekly(min_support=Decimal("0.1")), told, LATENCY_S), detail=True)
    shown = capsys.readouterr().out
    assert "alternative\tstrategy\tseconds\tbytes\trounds\nas written\tlevel-wise\t" in shown
    assert 'universe = "hidden"\tnot estimated' in shown
    told_so = " ".join(shown.split())
    assert 'least disclosure: set [itemsets] prefer = "disclosure", [itemsets] disclose = "frequent" ' in told_so
    assert "To be thought of" not in shown
    assert "190 candidates at level-2, 30 sums opened" in told_so
