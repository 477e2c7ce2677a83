"""How much of what costs much `make test` tries; `make test-slow` tries all of it."""

from __future__ import annotations

import inspect
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

ALL = "COMINE_ALL_EXAMPLES" in os.environ
"""Whether properties that cost much take all their examples, as `make test-slow` lets them."""

FEW = 8
"""Examples of a property that says nothing, and the most in `make test`. They are others at every run outside of CI."""

TURN = int(os.environ.setdefault("COMINE_TURN", "0" if "CI" in os.environ else str(secrets.randbelow(1000))))
"""Which part of a long matrix this run takes, at all its workers; its head says it, and `COMINE_TURN` repeats it.

Integration takes the same part every time, so that it judges the change and not the draw.
"""


def _of_commit() -> str:
    """A number of the commit's tree; 0 without git."""
    command = "git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD^{tree}"
    told = subprocess.run(command, capture_output=True, text=True).stdout if shutil.which("git") else ""
    return str(int(told[:6] or "0", 16))


FIRST_SEED = int(os.environ.get("COMINE_CHAOS_FIRST") or _of_commit())
"""Of the federations under simulated faults: others at each commit, and the same at each run of one.

The head of a run says it, and `COMINE_CHAOS_FIRST` repeats it.
"""

SEEDS = int(os.environ.get("COMINE_CHAOS_SEEDS") or 50)
"""How many of these federations a run takes."""

Test = TypeVar("Test", bound=Callable[..., Any])
Case = TypeVar("Case")

_WANTED: dict[Any, int] = {}  # by property, since all cases of a test share it


def examples(few: int, every: int, **options: Any) -> Callable[[Test], Test]:
    """For a property that costs much: a few examples in `make test`, and as many again as it wants in `make test-slow`.

    Args:
        few: How many are enough to see that it does not hold at all.
        every: How many it wants.
        options: As of `hypothesis.settings`.
    """

    def decorated(test: Test) -> Test:
        marked: Test = pytest.mark.costly(settings(max_examples=every if ALL else few, **options)(test))
        return marked

    return decorated


def few_at_first(items: Iterable[pytest.Item]) -> None:
    """Lets properties that want more than `FEW` examples take all of them in `make test-slow` alone.

    Those that say by `examples` how many are enough take so many, as fuzzers do whose number is asked for.
    """
    for item in items:
        if item.get_closest_marker("costly"):
            continue
        test: Any = getattr(item, "function", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)  # what `hypothesis.settings` leaves there
        if own is None or _WANTED.setdefault(test, own.max_examples) <= FEW:
            continue
        item.add_marker("costly")
        if not ALL:
            test._hypothesis_internal_use_settings = settings(own, max_examples=FEW)


def by_turns(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """All tests, but of the cases of one that is marked `turn(n)` every n-th alone, at least one, others at every run.

    `make test-slow` takes all. The mark, of a test or of a whole file, is for matrices, of whatever fixtures and
    parameters, in which a case proves little beside its neighbours. Tests of a file that are marked `turn(n, NAME)`
    are cases of one family.
    """
    every = list(items)
    families = dict[tuple[object, ...], list[pytest.Item]]()
    for item in every:
        if mark := item.get_closest_marker("turn"):
            test = (getattr(item, "cls", None), getattr(item, "originalname", ""))
            families.setdefault((item.path, *(mark.args[1:] or test)), []).append(item)
    left: set[pytest.Item] = set()
    for place, cases in enumerate(families.values()):  # as in `slowly`, turns that come together are spread
        if len(cases) > 1:
            mark = cases[0].get_closest_marker("turn")
            step = min(mark.args[0] if mark else 1, len(cases))
            for case in cases:
                case.add_marker("costly")
            left.update(set(cases) - set(cases[(place + TURN) % step :: step]))
    return every if ALL else [item for item in every if item not in left]


def files_in_turn(items: Iterable[pytest.Item], files: Sequence[Path], one_in: int) -> None:
    """Marks what is in these files slow, except in one of so many, another at every run; in `make test-slow` in all.

    What is tested is so whole or not at all, since the tests of a file share what they make first.
    """
    places = {file: place for place, file in enumerate(files)}
    for item in items:
        place = places.get(item.path)
        if place is not None and (ALL or (place + TURN) % one_in):
            item.add_marker("slow")


def in_turn(cases: Iterable[Case], one_in: int) -> list[Case]:
    """Of a matrix whose cases are alike, every so many, from another one at every run; all in `make test-slow`.

    Whose test is not marked slow is to be marked costly, as that of `spread`.
    """
    every = list(cases)
    return every if ALL else every[TURN % one_in :: one_in]


def crossed(cases: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Each of some cases with one of some others, with another at every run; all pairs in `make test-slow`."""
    some, more = [_values(case) for case in cases], [_values(other) for other in others]
    if ALL:
        return [pytest.param(*one, *other, marks=pytest.mark.costly) for one in some for other in more]
    number = max(len(some), len(more))
    return [(*some[place % len(some)], *more[(place + TURN) % len(more)]) for place in range(number)]


def spread(number: int, few: int, every: int) -> range:
    """About `few` of so many places, evenly spread, others at every run; about `every` of them in `make test-slow`."""
    step = max(1, number // (every if ALL else few))
    return range(TURN % step, number, step)


def slowly(cases: Iterable[Any], now: Container[int] = (), ids: Sequence[str] | None = None) -> list[Any]:
    """The cases of a test that prove little beside each other: those at other places than `now` are marked slow.

    A run takes a sixth of these, others at every run; `make test-slow` takes all.

    Args:
        cases: All of them.
        now: Places of those that are not slow.
        ids: Their names, if pytest is not to find some.
    """
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    line = frame.f_back.f_lineno  # tests whose turn comes at the same time are spread over the suite
    every = list(cases)
    step = min(6, len(every))  # so that each run has one
    return [
        pytest.param(
            *_values(case), marks=() if place in now else pytest.mark.slow, id=None if ids is None else ids[place]
        )
        for place, case in enumerate(every)
        if ALL or place in now or (place + line + TURN) % step == 0
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
