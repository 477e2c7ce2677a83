"""Summaries of jobs: short, in the words of the statement, and nothing of the statement is lost beside them."""

from __future__ import annotations

import re
from functools import cache
from math import exp
from pathlib import Path
from typing import Final

import pytest

from coordinator.cli.jobs.plan import sections
from jobs.loading import load_job
from jobs.plan.cost import about
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec
from jobs.statement import statement
from jobs.summary import summary
from link.files.printable import enumeration
from mining.joint.collusion import odds
from tests.jobs.audit import kinds
from tests.jobs.test_statement import JOBS, PARTIES
from tests.product_texts import ROOT

pytestmark = pytest.mark.turn(5)

MOST_LINES: Final = 12
COLUMNS: Final = 80
LONGEST_COST: Final = f"{about(9.9e8, 3000)} if each has 10,000 rows, 100 frequent items"
EXAMPLES: Final = {
    str(path.relative_to(ROOT)): path
    for path in sorted((ROOT / "examples").rglob("*.toml"))
    if "\n[job]\n" in path.read_text()
}
FENCE: Final = re.compile(r"```toml[^\n]*\n(.*?)```", re.DOTALL)
PAGES: Final = {
    f"{path.relative_to(ROOT)} {number}": fence
    for path in sorted((ROOT / "docs").rglob("*.md"))
    for number, fence in enumerate(FENCE.findall(path.read_text()))
    if re.search(r"^\[job\]$", fence, re.MULTILINE)
}


def _lines(spec: JobSpec) -> list[str]:
    return summary(spec).lines("analyst", LONGEST_COST)


@cache
def _shown(name: str) -> tuple[JobSpec, str]:
    spec = JOBS[name]()
    stated = statement(spec)
    plan = Plan(
        job="j",
        spec_digest=spec.digest.hex(),
        n_rows=None,
        strategy="any",
        rounds=0,
        seconds=0,
        parties={},
        batches=[],
        summary=summary(spec),
        disclosure=stated.as_data(),
        prose=stated.prose(),
        assumptions=[],
    )
    detail = [sentence for sentences in sections(plan).values() for sentence in sentences]
    return spec, " ".join(" ".join([*_lines(spec), *detail]).split())


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_have_short_summaries(example: str) -> None:
    assert_short(load_job(EXAMPLES[example]))


@pytest.mark.parametrize("place", PAGES)
def test_jobs_of_the_docs_have_short_summaries(place: str, tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(PAGES[place])
    (tmp_path / "items.txt").write_text("bread\nmilk\ntea\n")
    assert_short(load_job(file))


@pytest.mark.parametrize("name", kinds.JOBS)
def test_jobs_of_each_kind_have_short_summaries(name: str) -> None:
    assert_short(kinds.JOBS[name][0]()[0])


@pytest.mark.parametrize("name", JOBS)
def test_jobs_of_all_settings_have_short_summaries(name: str) -> None:
    assert_short(JOBS[name]())


def assert_short(spec: JobSpec) -> None:
    lines = _lines(spec)
    assert len(lines) <= MOST_LINES, "\n".join(lines)
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("name", JOBS)
def test_summary_and_detail_together_lack_nothing_of_the_statement(name: str) -> None:
    spec, shown = _shown(name)
    stated = statement(spec)
    assert {stated.adversary, stated.collusion, stated.worst, *stated.beyond} == {
        words for words in (stated.adversary, stated.collusion, stated.worst, *stated.beyond) if words in shown
    }
    for line in stated.learned:
        assert line.what in shown
        assert line.brief in shown
    for opened in stated.declared:
        whom = enumeration(sorted(opened.recipients))
        assert f"{opened.label}: {opened.what}, to {whom}, at most {opened.maximum:,} values" in shown


@pytest.mark.parametrize("name", JOBS)
def test_a_summary_says_what_each_side_learns(name: str) -> None:
    """All parties and all that gets the result is named, with nothing said twice, and no more than the statement."""
    spec = JOBS[name]()
    found, stated = summary(spec), statement(spec)
    named = {each.who for each in found.learns}
    assert named & {"parties", "all"} or set(spec.job.parties) <= set(" and ".join(named).split(" and "))
    assert named & {"coordinator", "all"} or not spec.to_coordinator
    said = [each.what for each in found.learns]
    assert all(len(set(what)) == len(what) for what in said)
    assert {brief for what in said for brief in what} == {line.brief for line in stated.learned if line.brief}
    assert found.learns[0].what[0] == stated.learned[0].what
    more = sum(not line.brief for line in stated.learned) + len(stated.beyond)
    assert f"; {more} more lines in the statement" in found.holds


@pytest.mark.parametrize("name", JOBS)
def test_a_summary_says_against_whom_it_holds_as_the_statement_does(name: str) -> None:
    spec = JOBS[name]()
    held, adversary = summary(spec).holds.partition("; ")[0], statement(spec).adversary
    if spec.trust.security == "malicious":
        whom = held.removeprefix("even if ").removesuffix(" should deviate from the protocol")
        assert f"malicious: {whom} may do what they like" in adversary
    else:
        assert (held, adversary.partition(":")[0]) == ("if every party follows the protocol", "semi-honest")


def test_only_parties_that_do_not_compute_are_named_beside_those_that_do() -> None:
    trust = {"helper": PARTIES[2], "security": "malicious"}
    three, four = (
        kinds.basket_job("itemsets", job={"parties": names}, trust=trust) for names in (PARTIES, (*PARTIES, "west"))
    )
    assert "do not compute" not in summary(three).holds
    assert "and any parties that do not compute, should deviate" in summary(four).holds


def test_many_parties_and_long_names_are_counted() -> None:
    names = tuple(f"a-hospital-with-a-long-name-{number}" for number in range(20))
    spec = kinds.basket_job("itemsets", job={"parties": names, "recipients": [names[0]]}, union={"bound": 100})
    assert "of 20 parties" in summary(spec).asked
    lines = _lines(spec)
    assert max(map(len, lines)) <= COLUMNS
    assert any(line.startswith(f"{names[0]}: ") for line in lines)
    assert any(line.startswith(f"parties but {names[0]}: ") for line in lines)


def test_a_budget_is_a_part_of_the_cost() -> None:
    spec, shown = _shown("noisy of 3")
    assert summary(spec).charge == "ε = 2 and δ = 1e-06 of each record's budget"
    assert "to any party nothing is over 7.4 times as likely with a record as without it" in shown
    assert summary(kinds.basket_job("itemsets", job={"parties": PARTIES})).charge is None


def test_the_readme_has_the_words_of_a_summary() -> None:
    """Its table is the summary of the job that it is about, an example."""
    found = summary(load_job(ROOT / "examples" / "groceries" / "job.toml"))
    readme = (ROOT / "README.md").read_text()
    for label, text in found.entries():
        if label not in ("asked", "holds"):
            assert f"| {label} | {text} |" in readme


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 2, 4, 8, 20])
def test_what_epsilon_means_is_never_understated(epsilon: float) -> None:
    told = odds("anybody", epsilon)
    (times,) = re.findall(r"over ([0-9.,]+) times", told)
    assert exp(epsilon) <= float(times.replace(",", "")) <= exp(epsilon) * 1.1
    assert "chance" not in told
    assert odds("anybody", epsilon, 1e-6).endswith(", but for a chance of 1e-06")
