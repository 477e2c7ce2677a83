"""Jobs whose unions hold next to nothing: nobody sees at whom the one rare item, or the one long name, is.

What coordinators did: exclude all items but a few, and read off whose list was longer or wider, or who ended the job.
Whole jobs run; of two jobs that differ in the holder alone, every other party and the coordinator get the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from jobs.run import PartyRun
from link.errors import ComineError
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.coordinator.simulation.whole_job import job, run_job
from tests.examples import crossed, slowly
from tests.mining.joint.oracle import Rows

pytestmark = pytest.mark.turn(3)

PARTIES = ("north", "south", "east")
HOLDERS = [*combinations(PARTIES, 2)]
View = Counter[tuple[object, ...]]

COMMON: Rows = [["tea", "milk"], ["tea"], ["milk"]] * 4


def world(holder: str, *more: str) -> dict[str, Rows]:
    """All hold the same rows, but for one of `holder`, which others have without its rare items."""
    return {name: [*COMMON, ["tea", *(more if name == holder else ())]] for name in PARTIES}


def played(data: Mapping[str, Rows], **options: Any) -> tuple[dict[str, View], dict[str, object]]:
    """By party, what it is sent; and what its coordinator hears of it."""
    frames: list[Frame] = []
    spec = job(data, **{"bound": None} | options)
    ends = asyncio.run(run_job(spec, data, InlineExecutor(), seed=5, observe=frames.append))
    heard: dict[str, object] = {}
    for name, end in ends.items():
        if isinstance(end, PartyRun):
            heard[name] = (end.costs.bytes_sent, end.costs.bytes_received, end.costs.rounds, end.outcome.n_rows)
        else:
            assert isinstance(end, ComineError)
            heard[name] = (type(end), end.code, end.message.removeprefix(f"{name}: "))
    kinds = ((f.receiver, (f.sender, f.lane, f.seq, f.type, f.last, len(f.body))) for f in frames)
    views = {name: View() for name in PARTIES}
    for receiver, kind in kinds:
        if kind[1] != "hello" and not kind[1].startswith("/receipts"):  # signatures are a byte longer or shorter
            views[receiver][kind] += 1
    return views, heard


RARE = [("hiv",), ("hiv", "flu"), tuple(f"i{number}" for number in range(20))]
WAYS: dict[str, dict[str, Any]] = {
    "all-items": {"universe": "all-items", "strategy": "level-wise"},
    "hidden": {"universe": "hidden", "strategy": "level-wise"},
    "frequent-items": {"strategy": "level-wise", "min_support": 1, "max_length": 1},
}


# Each way with each pair of holders, and each number of items; at every run each of these once.
@pytest.mark.parametrize(
    ("rare", "holders", "way"),
    slowly(
        ((rare, HOLDERS[(r + w) % 3], way) for r, rare in enumerate(RARE) for w, way in enumerate(WAYS)),
        now={1, 4, 6, 11},
    ),
)
def test_no_size_tells_who_holds_the_rare_items(rare: tuple[str, ...], holders: tuple[str, str], way: str) -> None:
    """With everything else excluded: each set has no element, or these."""
    options = WAYS[way] | {"exclude": ["tea", "milk"]}
    (one, heard), (other, also) = (played(world(holder, *rare), **options) for holder in holders)
    (third,) = set(PARTIES) - set(holders)
    assert one[third] == other[third]
    sums = [Counter(str(kind[1:]) for view in views.values() for kind in view.elements()) for views in (one, other)]
    assert sums[0] == sums[1]
    for name in PARTIES:  # what the coordinator hears is within the random bytes of signatures
        for before, after in zip(heard[name], also[name], strict=True):  # type: ignore[call-overload]
            assert abs(before - after) <= 12


@pytest.mark.parametrize("holders", HOLDERS)
def test_no_width_tells_who_holds_the_long_name(holders: tuple[str, str]) -> None:
    options = WAYS["all-items"] | {"exclude": ["milk"]}
    (one, _), (other, _) = (played(world(holder, "n" * 100), **options) for holder in holders)
    (third,) = set(PARTIES) - set(holders)
    assert one[third] == other[third]


@pytest.mark.parametrize(
    ("rare", "options", "holders"),
    crossed(
        [
            (tuple(f"i{number}" for number in range(63)), {"bound": 3}),
            (tuple(f"i{number}" for number in range(99)), {"bound": 3}),
            (("n" * 200,), {}),
            (("n" * 4000,), {}),
        ],
        [(pair,) for pair in HOLDERS],
    ),
)
def test_no_error_tells_who_is_over_a_limit(
    rare: tuple[str, ...], options: dict[str, Any], holders: tuple[str, str]
) -> None:
    """Not to a peer, not to the coordinator, and not by how much."""
    ends = [played(world(holder, *rare), **WAYS["all-items"], **options) for holder in holders]
    assert ends[0] == ends[1]
    (told,) = {*ends[0][1].values()}
    assert not any(name in str(told) for name in PARTIES)
    assert "nobody learns which" in str(told)


def test_one_long_name_costs_all_no_more_than_the_job_allows() -> None:
    """Eight blocks in the place of one where the job says nothing; a longer name ends it before a list has left."""

    def sent(name: str) -> int:
        _, heard = played(world("south", name), **WAYS["all-items"])
        return sum(numbers[0] for numbers in heard.values())  # type: ignore[index]

    assert sent("n" * 133) < 9 * sent("n")
    views, heard = played(world("south", "n" * 134), **WAYS["all-items"])
    assert not any("/list/" in str(kind) for view in views.values() for kind in view)
    assert "max_item_bytes" in str(heard["north"])
