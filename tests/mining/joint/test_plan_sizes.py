"""The traffic of whole jobs follows from a few sizes: those of a real run give about its bytes, and its rounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.protocols.alignment.costs import AlignmentSizes
from crypto.protocols.sums.masked_maximum import LABEL as SIZES
from crypto.protocols.union.prefix_costs import AskedBits
from crypto.protocols.union.size_classes import LISTS
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.loading import job_of
from jobs.run import PartyRun
from link.traffic import Traffic
from mining.joint.horizontal.hidden_sizes import HiddenSizes
from mining.joint.sizes import MiningSizes, mining_traffic
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor
from tests.coordinator.simulation.whole_job import BETWEEN_TWO, DATA, STRATEGIES, VERIFIED, identities, job, run_job
from tests.mining.joint.oracle import Rows
from tests.traffic import assert_planned

pytestmark = pytest.mark.turn(6)


@dataclass
class Seen:
    """What the frames of a run tell of its sizes."""

    words: dict[str, dict[str, NDArray[np.uint64]]] = field(default_factory=dict)
    opened: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: dict[str, dict[str, int]] = field(default_factory=dict)

    def observe(self, frame: Frame) -> None:
        lane = frame.lane.removeprefix("/task/")
        union = lane.split("/union/")[0]
        match frame.type.removeprefix("comine.v1."):
            case "Opening":
                opening = Opening.FromString(frame.body)
                if "/union/limits/" in lane:
                    return  # two bits that the three open
                if opening.label == SIZES:
                    self.words.setdefault(lane, {})[frame.sender] = np.frombuffer(opening.values, "<u8")
                elif "/union/question" in lane:
                    self.asked.setdefault(union, {})[lane] = opening.number
                else:
                    self.opened[lane, opening.label] = opening.number

    def by_prefixes(self, name: str) -> AskedBits | None:
        """Of candidates, the union is what is decided on."""
        elements = self.decided(name.removesuffix("/thin"))
        return AskedBits(tuple(self.asked[name].values()), elements) if name in self.asked else None

    def hidden(self, bound: int | None) -> HiddenSizes | None:
        opened = self.words.get("item-positions/row-union/length")
        if opened is None:
            return None
        largest = int(np.count_nonzero(np.sum(list(opened.values()), axis=0, dtype=np.uint64)))
        lists = AlignmentSizes(len(opened), LISTS.capacity(largest, bound), 0)
        return HiddenSizes(lists, self.by_prefixes("items"))

    def decided(self, lane: str) -> int:
        """The candidates of a ballot: where sums stay shared, as many as bits are opened."""
        return self.opened.get((lane, "frequent"), self.opened.get((lane, "supports"), 0))

    def rules(self) -> tuple[int, ...]:
        lanes = {lane: number for (lane, label), number in self.opened.items() if label == "rules"}
        return tuple(lanes[lane] for lane in sorted(lanes, key=lambda lane: int(lane.removeprefix("rules/from "))))

    def sizes(self, n_rows: int, frequent: tuple[int, ...], bound: int | None) -> MiningSizes:
        levels = [f"level-{length}" for length in range(2, 30)]
        counted = [place for place, level in enumerate(levels) if self.decided(level) or f"{level}/thin" in self.asked]
        levels = levels[: max(counted, default=-1) + 1]  # pairs may have been decided with the items
        hidden = self.hidden(bound)
        return MiningSizes(
            n_rows=n_rows,
            universe=self.decided("level-1"),
            items=None if hidden is not None else self.by_prefixes("items"),
            hidden=hidden,
            one_shot=self.by_prefixes("itemsets"),
            closure=self.decided("one-shot"),
            candidates=tuple(self.decided(level) for level in levels),
            thinned=tuple(union for level in levels if (union := self.by_prefixes(f"{level}/thin")) is not None),
            tried="itemsets" in self.asked,
            frequent=frequent,
            rules=self.rules(),
        )


def compare(
    data: Mapping[str, Rows],
    bound: int | None,
    *,
    rules: dict[str, str] | None = None,
    compute: tuple[str, str] | None = None,
    **options: Any,
) -> None:
    contents = json.loads(job(data, bound=bound, **options).canonical())
    contents["trust"]["compute"] = compute
    if rules is not None:
        contents["job"]["task"], contents["rules"] = "rules", rules
    spec, seen, executor = job_of(contents, "the test", Path()), Seen(), InlineExecutor()
    try:
        runs = asyncio.run(run_job(spec, data, executor, observe=seen.observe))
    finally:
        executor.close()
    ended = [run for run in runs.values() if isinstance(run, PartyRun)]
    assert len(ended) == len(data), runs
    found = next(run.outcome.finding.itemsets for run in ended if run.outcome.finding is not None)
    frequent = tuple(len(sets) for sets, _ in found.canonical().levels)
    sizes, task = seen.sizes(sum(map(len, data.values())), frequent, bound), horizontal_mining(spec)
    if task.catalogue is not None:
        sizes = replace(sizes, universe=len(task.catalogue))
    elif task.is_verified and task.strategy == "level-wise" and not task.thin:  # items and their pairs are one batch
        sizes = replace(sizes, universe=(isqrt(8 * sizes.universe + 1) - 1) // 2)
    if task.all_learn(data):
        singles = sorted(found.canonical().levels[0][1].tolist()) if found.levels else []
        sizes = replace(sizes, together=singles[-2:][0] if singles else None)
    traffic = Traffic(spec.job.parties)
    mining_traffic(traffic, task, sizes)
    traffic.session({name: len(own.certificate_pem) for name, own in identities(spec.job.parties).items()})
    # A chain is one shorter where a step is begun by who need not wait: for the last word of a union, for a sum of
    # which it holds the other share, for supports that only others learn. A lane counts from all that has arrived for
    # the task when it begins: the second message of an agreement beside the keys makes the sum of rows, which does not
    # wait for it, the third round instead of the second if it comes before the last key.
    beside = task.is_shared or task.unites_items or task.hides_names
    shorter = len(seen.asked) + bool(sizes.hidden) + len(seen.opened)
    costs = {name: run.costs for name, run in zip(runs, ended, strict=True)}
    assert_planned(traffic, costs, rounds=range(-shorter, 1 + beside))


WAYS = STRATEGIES | {
    "hidden": {"strategy": "level-wise", "universe": "hidden"},
}
MODES: dict[str, dict[str, Any]] = {
    "candidates": {"disclose": "candidates"},
    "supports": {"disclose": "supports"},
    "frequent": {"disclose": "frequent"},
    "rules": {"disclose": "frequent", "rules": {"min_confidence": "0.7"}},
    "others compute": {"disclose": "supports", "compute": ("east", "north")},
    "three compute": {"disclose": "supports", "helper": "east"},
    "three decide on rules": {"disclose": "frequent", "rules": {"min_confidence": "0.7"}, "helper": "east"},
}
RECIPIENTS = [("north",), ("east", "south"), ("coordinator",)]  # all parties learn it where nothing is said


@pytest.mark.parametrize(("strategy", "mode"), list(product(WAYS, MODES))[::3])
def test_every_strategy(strategy: str, mode: str) -> None:
    compare(DATA, None, **WAYS[strategy], **MODES[mode])


@pytest.mark.parametrize(("recipients", "mode"), list(product(RECIPIENTS, MODES))[::4])
def test_whoever_learns_the_result_and_with_a_public_bound(recipients: tuple[str, ...], mode: str) -> None:
    compare(DATA, 8, recipients=recipients, **STRATEGIES["level-wise"], **MODES[mode])


@pytest.mark.parametrize("settings", [{}, {"disclose": "frequent"}, {"recipients": ("east",)}])
def test_where_one_of_three_may_deviate(settings: dict[str, Any]) -> None:
    compare(DATA, None, **VERIFIED, **settings)


@pytest.mark.usefixtures("real_groups")
@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"disclose": "frequent", "recipients": ("south",)}])
def test_where_one_of_two_may_deviate(settings: dict[str, Any], parties: int) -> None:
    data = dict(list(DATA.items())[:parties])
    compare(data, None, **BETWEEN_TWO, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "level-wise"},
        {"strategy": "level-wise", "thin": True},
        {"strategy": "one-shot", "universe": "all-items"},
    ],
)
def test_where_one_of_three_may_deviate_and_there_is_no_catalogue(settings: dict[str, Any]) -> None:
    compare(DATA, 8, helper="east", security="malicious", **settings)


@pytest.mark.parametrize("helper", ["none", "east"])
def test_many_candidates_go_both_ways_or_in_turn_and_in_slices(helper: str) -> None:
    items = [f"{number:03}" for number in range(380)]
    rows = [items, items[1:], items[2:]]
    compare(dict.fromkeys(DATA, rows), None, max_length=2, min_support="0.7", helper=helper, **STRATEGIES["level-wise"])


@pytest.mark.parametrize("mode", ["candidates", "frequent"])
@pytest.mark.parametrize("strategy", ["level-wise", "thinned", "one-shot"])
def test_sums_take_no_longer_words_than_the_second_most_frequent_item_needs(strategy: str, mode: str) -> None:
    rows = [["bread", "tea"], ["bread", "milk", "tea"], ["bread"], ["bread"], ["bread"]] * 40
    compare(dict.fromkeys(DATA, rows), None, **(WAYS[strategy] | MODES[mode]))
