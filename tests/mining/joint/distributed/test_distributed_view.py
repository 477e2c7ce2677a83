"""Transcripts under distributed noise hold no exact sum and no union, and views depend on noisy sums alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from google.protobuf import symbol_database
from scipy import stats

from link.disclosure import kinds
from mining.joint.distributed.disclosure import collusion, learned, openings
from mining.joint.distributed.parameters import DistributedMining
from protos.v1 import common_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.mining.joint.distributed.distributed_world import run, supports, task_for
from tests.mining.joint.oracle import Rows

pytestmark = pytest.mark.turn(3)

DATA: dict[str, Rows] = {
    "north": [["a", "b", "c"], ["a", "b"], ["c"], ["d"]] * 150,
    "south": [["a", "b", "c"], ["b", "c"], ["e"]] * 140,
    "east": [["a", "c"], ["a", "b", "c", "f"]] * 150,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "public items": {},
    "named items": {"catalogue": None},
    "skellam": {"noise": "skellam", "catalogue": None},
    "one learner": {"learners": ("south",)},
    "the k largest": {"top_k": 5, "min_support": None},
}
NOISY = {"noisy_rows", "noisy_sizes", "noisy_supports", "items"}


def variant(data: Mapping[str, Rows], name: str) -> DistributedMining:
    given = {"min_support": 300, "contributions": (4, 6, 4), "colluding": 1, **VARIANTS[name]}
    return task_for(data, **given)


def transcript(data: Mapping[str, Rows], task: DistributedMining, seed: int = 0) -> list[Frame]:
    frames: list[Frame] = []
    run(data, task, seed, observe=frames.append)
    return frames


@pytest.mark.parametrize("name", VARIANTS)
def test_only_noisy_labels_are_opened(name: str) -> None:
    """No exact sum, no union, no threshold, no shared bit: neither its label nor its lane nor its message occurs."""
    task = variant(DATA, name)
    lines = {line.label: line for line in openings(task, tuple(DATA))}
    assert set(lines) == NOISY - (set() if task.catalogue is None else {"items"})
    sent: dict[tuple[str, str, str], int] = defaultdict(int)
    database, types, lanes = symbol_database.Default(), set[str](), set[str]()
    for frame in transcript(DATA, task):
        lanes.add(frame.lane)
        types.add(frame.type.removeprefix("comine.v1."))
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            assert frame.receiver in lines[message.label].recipients
            if frame.last:
                sent[frame.sender, frame.receiver, message.label] += message.number
        else:
            assert kinds(database.GetSymbol(frame.type)) <= {common_pb2.PUBLIC}
    assert {label for _, _, label in sent} == set(lines)
    assert all(number <= lines[label].maximum for (_, _, label), number in sent.items())
    assert types <= {"Hello", "AgreementKey", "Opening", "OpeningSize"}
    of_levels = {lane for lane in lanes if lane.startswith("/task/level-")}  # as far as the noise lets them go
    assert {"/task/level-1", "/task/level-2"} <= of_levels <= {f"/task/level-{length}" for length in (1, 2, 3)}
    of_sizes = {lane for lane in lanes if lane.startswith("/task/sizes-")}  # where rows may be cut
    assert "/task/sizes-1" in of_sizes
    assert lanes == {
        "hello",
        "/task/keys/pairwise",
        "/task/rows",
        *of_levels,
        *of_sizes,
        *(["/task/items"] if "items" in lines else []),
    }


def views(data: Mapping[str, Rows], runs: int) -> tuple[set[object], bytes, list[dict[frozenset[str], float]]]:
    """Of party north over many runs: the shapes of its view, all shares it received, and the results."""
    task, shapes, shares, results = variant(DATA, "public items"), set[object](), b"", []
    for seed in range(runs):
        frames: list[Frame] = []
        results.append(supports(run(data, task, seed, observe=frames.append)["north"]))
        received = [f for f in frames if f.receiver == "north"]
        order = sorted(received, key=lambda f: (f.sender, f.lane, f.seq))
        shapes.add(tuple((f.sender, f.lane, f.seq, f.type, len(f.body), f.round) for f in order))
        shares += b"".join(Opening.FromString(f.body).values for f in order if f.type == Opening.DESCRIPTOR.full_name)
    return shapes, shares, results


def test_a_view_depends_on_the_others_through_noisy_sums_alone() -> None:
    """South's and east's rows are dealt anew: what is opened stays, to the last digit, and the shares stay uniform.

    Each chi-square test wrongly fails with probability 10⁻⁶.
    """
    rows = [*DATA["south"], *DATA["east"]]
    first, second = views(DATA, 10), views({**DATA, "south": rows[::2], "east": rows[1::2]}, 10)
    assert first[0] == second[0]
    assert len(first[0]) == 1
    assert first[2] == second[2]
    assert len({tuple(sorted(result.values())) for result in first[2]}) == 10
    histograms = [np.bincount(np.frombuffer(shares, np.uint8), minlength=256) for shares in (first[1], second[1])]
    for histogram in histograms:
        assert stats.chisquare(histogram).pvalue > 1e-6
    assert stats.chi2_contingency(histograms).pvalue > 1e-6


def test_the_statement_tells_the_budget_and_who_may_collude() -> None:
    parties = tuple(DATA)
    told = " ".join(line.exact for line in learned(variant(DATA, "named items"), parties))
    assert "ε = 2 and δ = 1e-06 of a record for all of it together" in told
    assert "the number N of all transactions, with noise" in told
    assert "which items each party names" in told
    public = " ".join(line.exact for line in learned(variant(DATA, "public items"), parties))
    assert "nothing of items beyond the public catalogue" in public
    assert "which items each party names" not in public
    assert "each single party" in collusion(variant(DATA, "skellam"), parties)
    four = (*parties, "west")
    outside = collusion(task_for(DATA, 300), four)
    assert "a party knows its own noise" in outside
    assert "more, up to 3, see sums over the others with less noise" in outside
    assert "any 2 parties that pool their noise" in collusion(task_for(DATA, 300, colluding=2), four)
