"""What a coordinator learns that runs a job again and again, each time with another limit of its choice.

Whole jobs run. Their ends are added up over a sweep of a limit, and must be those of every party's data of the same
class: a size class, or a length class, which a job without the limit tells anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.union.size_classes import SETS
from jobs.statement import statement
from link.errors import ComineError
from mining.data.transactions import Transactions
from mining.joint.horizontal import one_shot
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import HorizontalMining
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.coordinator.simulation.whole_job import job, run_job
from tests.examples import slowly
from tests.mining.joint.oracle import Rows

pytestmark = pytest.mark.turn(3)

PARTIES = ("north", "south", "east")
ALL_ITEMS: dict[str, Any] = {"universe": "all-items", "strategy": "level-wise", "max_length": 1, "min_support": 2}
HIDDEN: dict[str, Any] = ALL_ITEMS | {"universe": "hidden"}


def ended(names: Sequence[str], limit: dict[str, int], way: dict[str, Any]) -> str:
    """The code with which a job ended; south has these items, others next to nothing."""
    data: dict[str, Rows] = {"north": [["tea"]], "south": [[name] for name in names], "east": [["tea"]]}
    spec = job(data, **{"bound": limit.get("bound")} | way)
    if "max_item_bytes" in limit:
        spec = spec.model_copy(update={"union": spec.union.model_copy(update=limit)})
    ends = asyncio.run(run_job(spec, data, InlineExecutor())).values()
    (code,) = {end.code if isinstance(end, ComineError) else "" for end in ends}
    return code


def items(number: int) -> list[str]:
    return [f"i{place}" for place in range(number)]


@pytest.mark.parametrize("way", slowly([ALL_ITEMS, HIDDEN], now=[0], ids=["all-items", "hidden"]))
def test_bounds_tell_no_more_than_the_size_class(way: dict[str, Any]) -> None:
    assert not any(ended(items(number), {"bound": bound}, way) for bound in (1, 40) for number in (2, 64))
    assert [ended(items(65), {"bound": bound}, way) for bound in (63, 65)] == ["E104", ""]


def test_limits_of_names_tell_no_more_than_the_length_class() -> None:
    two_blocks = (17, 30)
    assert not any(ended(["n" * n], {"max_item_bytes": most}, ALL_ITEMS) for most in two_blocks for n in (18, 33))
    assert ended(["n" * 34], {"max_item_bytes": 32}, ALL_ITEMS) == "E104"


def mined(number: int, limit: int) -> bool:
    """Whether a party says that its local mining is bounded, with so many locally frequent items."""
    task = HorizontalMining(1, PARTIES, "north", PARTIES[:2], max_candidates=limit, max_length=2)
    tally = cast(HorizontalTally, SimpleNamespace(task=task, threshold=1))
    return one_shot.locally_frequent(tally, Transactions.from_rows([[name] for name in items(number)])) is not None


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 300))
def test_limits_of_candidates_tell_no_more_than_the_size_class_of_what_is_mined(one: int, other: int) -> None:
    swept = [[mined(number, limit) for limit in (1, 30, 64, 65, 100, 129, 200, 256, 299)] for number in (one, other)]
    if SETS.place(one) == SETS.place(other):
        assert swept[0] == swept[1]


# -- what unions tell of holders ---------------------------------------------------------------------------------------
CATALOGUE: dict[str, Any] = {"universe": "the catalogue", "catalogue": list("abc")}
WAYS: dict[str, dict[str, Any]] = {
    "frequent-items": {"strategy": "level-wise"},
    "all-items": {"universe": "all-items", "strategy": "level-wise"},
    "hidden": {"universe": "hidden", "strategy": "level-wise"},
    "one-shot": {"strategy": "one-shot"},
    "thinned": {"strategy": "level-wise", "thin": True},
    "thinned catalogue": {"strategy": "level-wise", "thin": True, **CATALOGUE},
    "catalogue": {"strategy": "level-wise", **CATALOGUE},
}
ROWS: Rows = [["a", "b"], ["a", "c"], ["b", "c"]]


@pytest.mark.parametrize("way", WAYS)
def test_no_party_learns_more_of_holders_than_others(way: str) -> None:
    spec = job(dict.fromkeys(PARTIES, ROWS), bound=None, **WAYS[way])
    assert all(set(PARTIES) <= set(line.who) or line.who == ("coordinator",) for line in statement(spec).learned)
