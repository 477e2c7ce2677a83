"""Whether policies' rule `min_count` lets a job run: what plans say of it is true, and follows from published sizes."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.loading import job_of
from jobs.plan.floor import USUAL, Bounds, of_all, of_own, published_rows
from mining.public_sizes import NOTHING, PublicSizes, between
from mining.thresholds import minimum_count
from party.data.dataset_check import RARE
from party.init_files import render_party
from tests.jobs.plan.answers import PARTIES, weekly

FRACTIONS = st.decimals("0.0001", "1", places=4)


def published(*rows: int) -> dict[str, PublicSizes]:
    """What parties with so many rows publish."""
    return {name: PublicSizes(number).coarse() for name, number in zip(PARTIES, rows, strict=True)}


@given(st.tuples(*[st.integers(0, 10**6)] * 3), FRACTIONS)
def test_the_true_count_is_in_the_range_that_is_said(rows: tuple[int, ...], asked: Decimal) -> None:
    sizes = published(*rows)
    least, most = published_rows(weekly(), sizes)
    assert least <= sum(rows)
    assert most is None or sum(rows) <= most
    said = of_all(weekly(min_support=str(asked)), sizes)
    assert said is not None
    count = minimum_count(asked, sum(rows))
    if found := re.search(r"comes to (?:at least )?([\d,]+)(?: to ([\d,]+))? rows", said.sentence):
        low, high = (int(each.replace(",", "")) if each else None for each in found.groups())
        assert low is not None
        assert low <= count
        assert high is None or count <= high
    if proposed := re.search(r"from min_support = (\S+) on", said.sentence):
        assert minimum_count(Decimal(proposed[1]), sum(rows)) >= USUAL


def test_a_fraction_that_may_come_to_few_rows_is_warned_of() -> None:
    said = of_all(weekly(min_support="0.001"), published(2000, 2000, 2000))
    assert said is not None
    assert said.warns
    assert said.sentence == (
        "min_support = 0.001 comes to 5 to 10 rows by published sizes: policies that ask for more than 10 (rule "
        "min_count) end the job at the run, those that ask for up to 5 do not; from min_support = 0.0024 on it surely "
        "reaches 10, which comine init writes."
    )


@pytest.mark.parametrize(("support", "rows"), [("0.01", (2000, 2000, 2000)), ("0.001", (20_000, 20_000, 20_000))])
def test_a_fraction_that_surely_comes_to_enough_is_no_warning(support: str, rows: tuple[int, ...]) -> None:
    said = of_all(weekly(min_support=support), published(*rows))
    assert said is not None
    assert not said.warns


def test_where_nothing_is_published_it_says_so() -> None:
    said = of_all(weekly(min_support="0.01"), dict.fromkeys(PARTIES, NOTHING))
    assert said is not None
    assert not said.warns
    assert "no sizes are published" in said.sentence


def test_where_some_publish_nothing_no_most_is_known() -> None:
    said = of_all(weekly(min_support="0.01"), {**published(2000, 2000, 0), "east": NOTHING})
    assert said is not None
    assert "at least 29 rows" in said.sentence


@pytest.mark.parametrize("count", [9, 6000])
def test_a_count_that_all_parties_may_have_goes_without_saying(count: int) -> None:
    assert of_all(weekly(min_support=count), published(2000, 2000, 2000)) is None


def test_a_count_above_all_rows_is_warned_of() -> None:
    said = of_all(weekly(min_support=20_000), published(2000, 2000, 2000))
    assert said is not None
    assert said.warns
    assert "at most 9," in said.sentence


def test_of_rows_that_all_have_a_most_is_known_alone() -> None:
    named = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "people", "partition": "vertical"}
    spec = job_of({"job": named, "itemsets": {"min_support": "0.01"}}, "the test", Path())
    least, most = published_rows(spec, published(10_000, 500, 2000))
    assert (least, most) == (0, between(500)[1])
    said = of_all(spec, published(10_000, 500, 2000))
    assert said is not None
    assert said.warns
    assert "comes to at most 8 rows" in said.sentence
    own = of_own(spec, 10, Bounds(500, 500), "south")
    assert own is not None
    assert "south has fewer than 901 rows" in own


def test_without_sums_of_itemsets_nothing_is_said() -> None:
    named = {"name": "j", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    privacy = {"model": "distributed", "epsilon": "1", "delta": "0.00001"}
    noisy = job_of({"job": named, "itemsets": {"min_support": "0.01"}, "privacy": privacy}, "the test", Path())
    assert of_all(noisy, published(100, 100, 100)) is None
    assert of_own(noisy, 10, Bounds(100, 100), "north") is None


@given(st.integers(2, 1000), st.integers(1, 10**5), FRACTIONS)
def test_what_a_party_says_to_itself_is_what_its_rule_would_say(least: int, rows: int, asked: Decimal) -> None:
    said = of_own(weekly(min_support=str(asked)), least, Bounds(rows, rows), "north")
    assert said is not None
    if "with the rows of north alone." in said:
        assert minimum_count(asked, rows) >= least
    else:
        needed = int((re.search(r"have ([\d,]+) rows", said) or [""])[1].replace(",", ""))
        assert minimum_count(asked, rows) < least
        assert minimum_count(asked, needed) >= least > minimum_count(asked, needed - 1)
        if proposed := re.search(r"from (\S+) on", said):
            assert Fraction(proposed[1]) * rows > least - 1


def test_the_usual_count_is_what_init_writes() -> None:
    written = render_party("north", listen="h:1", dataset="baskets", source={"source": "a.dat", "format": "basket"})
    assert f"\nmin_count = {USUAL} " in written
    assert USUAL == RARE
