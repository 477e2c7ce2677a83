"""The statement of a job is true: of what parties open, what one of them sees, and what reaches the coordinator."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import symbol_database

from coordinator import node_client
from coordinator.jobs.runner import run_job as run_at_nodes
from jobs.results.result import Result
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.disclosure import kinds
from link.session import HELLO_LANE
from link.steps import LABEL as AGAIN
from mining.thresholds import local_threshold, minimum_count
from protos.v1 import common_pb2
from protos.v1 import control_pb2 as control
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import BETWEEN_TWO, DATA, STRATEGIES, VERIFIED, job, run_job
from tests.mining.joint.oracle import Rows, pooled_supports
from tests.party import nodes

pytestmark = pytest.mark.turn(8)

MALICIOUS: dict[str, Any] = {"helper": "east", "security": "malicious"}
VARIANTS: dict[str, dict[str, Any]] = {
    "all candidates' sums": {"strategy": "level-wise", "disclose": "candidates"},
    "hidden": {"strategy": "level-wise", "universe": "hidden"},
    "all hidden": {"strategy": "level-wise", "prefer": "disclosure", "disclose": "frequent"},
    "no sums": {"strategy": "level-wise", "disclose": "frequent"},
    "no sums, one-shot": {"strategy": "one-shot", "disclose": "frequent"},
    "one learner, all candidates' sums": {"strategy": "one-shot", "disclose": "candidates", "recipients": ("south",)},
    "three compute": {"strategy": "level-wise", "helper": "east"},
    "three compute, no sums": {"strategy": "one-shot", "disclose": "frequent", "helper": "east"},
    "three compute, one may deviate": VERIFIED,
    "two compute, one may deviate": BETWEEN_TWO,
    "two compute, one may deviate, no sums": {**BETWEEN_TWO, "disclose": "frequent", "recipients": ("south",)},
    "three compute, one may deviate, frequent items": {**MALICIOUS, "strategy": "level-wise", "thin": True},
    "three compute, one may deviate, one-shot": {**MALICIOUS, "strategy": "one-shot", "universe": "all-items"},
    "three compute, one may deviate, no sums": {**VERIFIED, "disclose": "frequent", "recipients": ("south",)},
    **STRATEGIES,
    "one-shot, all": {"strategy": "one-shot", "union": "all"},
    "all items": {"strategy": "level-wise", "universe": "all-items"},
    "one-shot, all items": {"strategy": "one-shot", "universe": "all-items"},
    "thinned, catalogue": {**STRATEGIES["catalogue"], "thin": True},
    "no bound": {"strategy": "one-shot", "bound": None},
    "pairs at most": {"strategy": "one-shot", "max_length": 2},
    "items only": {"max_length": 1},
    "one learner": {"strategy": "one-shot", "recipients": ("south",)},
    "one learner, thinned": {"strategy": "level-wise", "thin": True, "recipients": ("coordinator", "east")},
    "two learners": {"strategy": "level-wise", "recipients": ("east", "south")},
    "for the coordinator": {"strategy": "level-wise", "recipients": ("coordinator",)},
}


def played(spec: JobSpec, data: Mapping[str, Rows] = DATA, seed: int = 0) -> tuple[dict[str, PartyRun], list[Frame]]:
    """All parties' runs and all frames."""
    frames: list[Frame] = []
    ends = run_still(run_job(spec, data, InlineExecutor(), seed=seed, observe=frames.append))
    runs: dict[str, PartyRun] = {}
    for party, end in ends.items():
        assert isinstance(end, PartyRun), end
        runs[party] = end
    return runs, frames


@cache
def played_variant(variant: str) -> tuple[dict[str, PartyRun], list[Frame]]:
    """One run for all that is looked for in it."""
    return played(job(**VARIANTS[variant]))


# -- what is opened --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_that_is_opened_is_stated_and_the_other_way_round(variant: str) -> None:
    spec = job(**VARIANTS[variant])
    declared = {line.label: line for line in statement(spec).declared}
    again = [] if spec.is_verified else [AGAIN]
    for label in again:
        assert declared.pop(label).recipients == set(spec.job.parties)  # in another attempt alone
    runs, _ = played_variant(variant)
    labels = set()
    for run in runs.values():
        sent: dict[tuple[str, str], int] = defaultdict(int)
        for opened in run.opened:
            labels.add(opened.label)
            assert set(opened.recipients) <= declared[opened.label].recipients
            for receiver in opened.recipients:
                sent[opened.label, receiver] += opened.number
        for (label, _), number in sent.items():
            assert number <= declared[label].maximum
    assert labels == set(declared)
    said = [line["label"] for line in statement(spec).as_data() if "label" in line]
    assert sorted(said) == sorted([*labels, *again])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ledger_holds_every_opening_on_the_wire(variant: str) -> None:
    runs, frames = played_variant(variant)
    on_wire: dict[tuple[str, str, str], int] = defaultdict(int)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.last:
            message = Opening.FromString(frame.body)
            on_wire[frame.sender, frame.receiver, message.label] += message.number
    recorded: dict[tuple[str, str, str], int] = defaultdict(int)
    for party, run in runs.items():
        for opened in run.opened:
            for receiver in opened.recipients:
                recorded[party, receiver, opened.label] += opened.number
    assert recorded == on_wire


@pytest.mark.parametrize("variant", VARIANTS)
def test_recipients_among_the_parties_and_only_they_learn_supports(variant: str) -> None:
    spec = job(**VARIANTS[variant])
    runs, frames = played_variant(variant)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and Opening.FromString(frame.body).label == "supports":
            assert frame.receiver in spec.learners
    assert {party for party, run in runs.items() if run.outcome.finding is not None} == set(spec.learners)


# -- what one party sees ---------------------------------------------------------------------------------------------
# North keeps its rows; the others' rows are dealt anew, so that all sums and both unions of the one-shot strategy stay.
BOUND = 64  # a size class
FIRST = {"north": DATA["north"], "south": DATA["south"], "east": DATA["east"]}
SWAPPED = {"north": DATA["north"], "south": DATA["east"], "east": DATA["south"]}


def local(rows: Rows, n_rows: int, parties: int) -> tuple[frozenset[str], frozenset[frozenset[str]]]:
    """The locally frequent items and the maximal locally frequent itemsets of two or more frequent items."""
    share = Decimal("0.2")
    least = minimum_count(share, n_rows)
    threshold = local_threshold(share, len(rows), least, parties, Decimal("0.8"), n_rows)
    frequent_somewhere = {i for s in pooled_supports(FIRST, share) for i in s}
    items = frozenset(i for s in pooled_supports({"": rows}, threshold, 1) for i in s)
    known = [[i for i in row if i in frequent_somewhere] for row in rows]
    found = [s for s in pooled_supports({"": known}, threshold) if len(s) > 1]
    return items, frozenset(s for s in found if not any(s < other for other in found))


def unions(data: Mapping[str, Rows]) -> tuple[list[frozenset[Any]], list[int]]:
    """Both unions, and how many elements all parties' sets hold together."""
    n_rows = sum(map(len, data.values()))
    sets = list(zip(*(local(rows, n_rows, len(data)) for rows in data.values()), strict=True))
    return [frozenset().union(*each) for each in sets], [sum(map(len, each)) for each in sets]


@cache
def deals() -> dict[str, dict[str, Rows]]:
    """The first deal, and others with its unions; `disjoint` with fewer elements in common."""
    rows = sorted([*DATA["south"], *DATA["east"]])
    found = {"first": FIRST, "swapped": SWAPPED}
    for seed in range(20):
        source = random.Random(seed)
        dealt, cut = source.sample(range(len(rows)), len(rows)), source.randrange(8, len(rows) - 8)
        data = {"north": DATA["north"], "south": [rows[i] for i in dealt[:cut]], "east": [rows[i] for i in dealt[cut:]]}
        if unions(data)[0] == unions(FIRST)[0]:
            name = "mixed" if unions(data)[1] == unions(FIRST)[1] else "disjoint"
            found.setdefault(name, data)
    return found


@cache
def view(
    deal: str, parties: tuple[str, ...], seed: int
) -> tuple[list[tuple[object, ...]], dict[str, bytes], dict[str, list[bytes]]]:
    """Of north: the shape of all that it receives, the answers of all questions, and all that is public in it."""
    data = {party: deals()[deal][party] for party in parties}
    _, frames = played(job(data, bound=BOUND, strategy="one-shot"), data, seed)
    shape: list[tuple[object, ...]] = []
    shares: dict[str, dict[str, bytes]] = defaultdict(dict)
    public: dict[str, list[bytes]] = defaultdict(list)
    database = symbol_database.Default()
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and "/question" in frame.lane:
            shares[frame.lane][frame.sender] = Opening.FromString(frame.body).values
    answers = {
        lane: bytes(np.bitwise_xor.reduce([np.frombuffer(part, np.uint8) for part in parts.values()]))
        for lane, parts in shares.items()
    }
    received = (f for f in frames if f.receiver == "north" and f.lane not in (HELLO_LANE, "/receipts"))
    for frame in sorted(received, key=lambda f: (f.lane, f.sender, f.seq)):
        size = len(frame.body)
        if frame.type == Opening.DESCRIPTOR.full_name:
            pass  # shares, of which the answers come
        elif kinds(database.GetSymbol(frame.type)) <= {common_pb2.PUBLIC}:
            public[frame.lane].append(frame.body)
        shape.append((frame.sender, frame.lane, frame.seq, frame.type, size, frame.last, frame.round))
    return shape, answers, public


@pytest.mark.parametrize(
    ("parties", "deal"),
    [
        (("north", "south", "east"), "swapped"),
        (("north", "south", "east"), "disjoint"),
        (("south", "north", "east"), "mixed"),
    ],
)
def test_the_view_tells_nothing_of_who_of_the_others_counts_what(parties: tuple[str, ...], deal: str) -> None:
    """North gets frames of the same kinds, order and sizes, equal public values, and equal answers to all questions."""
    gained = [b - a for a, b in zip(unions(FIRST)[1], unions(deals()[deal])[1], strict=True)]
    assert any(gained) == (deal == "disjoint")
    for seed in range(2):
        assert view("first", parties, seed) == view(deal, parties, seed)
        assert view("first", parties, seed)[1]


# -- what the coordinator sees ---------------------------------------------------------------------------------------
RARE, COMMON = "a-rare-and-telling-item", "bread"
SHOPS: dict[str, nodes.Rows] = {
    "north": [[COMMON, "milk"], [COMMON], [COMMON, RARE], [RARE, "milk"], [RARE]],
    "south": [[COMMON, "milk"]] * 8 + [["only-in-the-south"]],
    "east": [[COMMON], ["milk"], [COMMON, "milk"]] * 3,
}


class Tap:
    """A channel that keeps the bytes of all messages which it receives."""

    def __init__(self, channel: Any, kept: list[bytes]) -> None:
        self._channel, self._kept = channel, kept

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._channel, name)
        if name not in ("unary_unary", "unary_stream"):
            return found

        def method(path: str, *, response_deserializer: Any, **options: Any) -> Any:
            def keep(data: bytes) -> Any:
                self._kept.append(data)
                return response_deserializer(data)

            return found(path, response_deserializer=keep, **options)

        return method


@pytest.mark.parametrize("strategy", ["level-wise", "one-shot"])
def test_the_coordinator_gets_frequent_itemsets_and_costs(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that is frequent in the north but not altogether is known to all parties and never to the coordinator."""
    received: list[bytes] = []
    dial = node_client.dial
    monkeypatch.setattr(node_client, "dial", lambda *where: Tap(dial(*where), received))
    spec = nodes.weekly(itemsets={"min_support": "0.3", "strategy": strategy})

    async def test() -> Result:
        async with nodes.running(tmp_path, data=SHOPS) as federation:
            identity = federation.authority.issue("hub", "coordinator")
            return await run_at_nodes(spec, identity, federation.addresses)

    result = asyncio.run(test())
    expected = pooled_supports(SHOPS, Decimal("0.3"))
    assert result.finding is not None
    assert {frozenset(s): n for s, n in result.finding.itemsets} == expected
    assert frozenset([RARE]) not in expected
    assert frozenset([COMMON, "milk"]) in expected
    everything = b"".join(received)
    assert COMMON.encode() in everything  # so the tap works
    assert RARE.encode() not in everything
    assert b"only-in-the-south" not in everything


@pytest.mark.parametrize("recipients", [("coordinator",), ("all",), ("south",)])
def test_the_statement_says_what_the_coordinator_sees(recipients: tuple[str, ...]) -> None:
    spec = job(strategy="level-wise", recipients=recipients)
    lines = [line.exact for line in statement(spec).learned if "coordinator" in line.who]
    assert len(lines) == 4 + spec.to_coordinator
    assert any("of each party whether it can take part with its data" in line for line in lines)
    assert any(line.startswith("N, ") or line.endswith(", and N") for line in lines)
    assert any("number of candidates and the greatest length" in line for line in lines)


def test_messages_to_the_coordinator_have_no_room_for_anything_else() -> None:
    """A new field is something that the coordinator learns: put it into the statement, then here."""
    fields = {
        control.Release: "job_id session party result_digest n_rows positions "
        "bytes_sent bytes_received rounds seconds strategy receipts_from",
        control.ResultHeader: "release signature certificate",
        control.ResultPart: "header table",
        control.JobEvent: "state step done total bytes_sent bytes_received rounds seconds "
        "error_code error_message error_party approval deal attempt",
    }
    for message, names in fields.items():
        assert [field.name for field in message.DESCRIPTOR.fields] == names.split()
