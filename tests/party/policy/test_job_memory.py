"""What a job counts for of a node's memory: by what is published alone, and only where something limits it."""

from __future__ import annotations

import itertools
from collections import defaultdict

from link.files.quantities import size
from mining.public_sizes import NOTHING, PublicSizes
from party.policy.job_memory import expected_memory
from tests.party.nodes import weekly

MILLION = PublicSizes(1_000_000, 1000)


def test_more_rows_take_more_and_what_is_not_published_counts_for_little() -> None:
    spec = weekly()
    nothing, million = (expected_memory(spec, sizes, "north") for sizes in (NOTHING, MILLION))
    assert nothing < 16 << 20
    assert 50 << 20 < million < 1 << 30


def test_rows_in_blocks_count_for_their_processes_and_not_for_their_number() -> None:
    few, many = (expected_memory(weekly(), PublicSizes(rows, 1000), "north", 300 << 20) for rows in (1000, 10_000_000))
    assert 300 << 20 <= few == many < 400 << 20
    assert expected_memory(weekly(), PublicSizes(10_000_000, 1000), "north", 0) == few - (300 << 20)


def answers(sizes: PublicSizes) -> tuple[str, ...]:
    """What a coordinator hears of nodes with much memory for jobs and little, by jobs of all sizes."""
    heard = []
    for support, candidates in itertools.product((2, "0.05"), (10_000, 3_000_000)):
        spec = weekly(itemsets={"min_support": support, "max_candidates": candidates})
        expected = expected_memory(spec, sizes, "north")
        limits = (16 << 20, 64 << 20, 256 << 20)
        heard += [f"refused: {size(expected)}" if expected > memory else "runs" for memory in limits]
    return tuple(heard)


def test_an_attack_by_chosen_parameters_learns_of_rows_what_is_published_and_no_more() -> None:
    """Every threshold may be met by a job of some size: what is heard differs only where what is published does."""
    told: dict[PublicSizes, set[tuple[str, ...]]] = defaultdict(set)
    for rows, items in ((1_000_000, 1000), (800_001, 1399), (2_000_000, 1000), (99, 50)):
        sizes = PublicSizes(rows, items)
        told[sizes.coarse()].add(answers(sizes))
    assert [len(each) for each in told.values()] == [1, 1, 1]
    assert len(set.union(*told.values())) == 3  # so the attack hears something at all
    assert NOTHING in told
