"""Columns of several parties, of whom some may deviate: results, refusals, plans, what is opened, and attacks."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from coordinator.jobs.simulation.simulate import simulate_job
from crypto.primitives.groups.point_hash import points_of
from crypto.protocols.alignment import zero_shares
from crypto.protocols.sums.pairwise import agree
from jobs.kinds.registry import kind_of
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.statement import statement
from link.session import Session
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.joint.parameters import JointItemsets
from mining.joint.vertical import verified
from mining.joint.vertical.aligned import Aligned
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.parameters import VerticalMining
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.crypto.protocols.replicated.deviating_world import Ends, OneAltered, run_deviating
from tests.crypto.protocols.replicated.test_verified_sums import assert_caught_or_right, unaltered
from tests.errors import fails
from tests.examples import examples
from tests.jobs.plan.test_vertical import SPEED
from tests.mining.joint.vertical.test_vertical import columns_of
from tests.mining.joint.vertical.test_vertical_run_sizes import cells_of, compare, job, tables
from tests.mining.joint.vertical.vertical_world import assert_mined
from tests.world import run_parties

PARTIES = ("north", "south", "east", "west")
TRUST = {"helper": "east", "security": "malicious"}


def task_for(parties: Sequence[str], least: int, **options: Any) -> VerticalMining:
    named: dict[str, Any] = {"compute": parties[:2], "helper": parties[2], "security": "malicious"} | options
    return VerticalMining(least, named.pop("learners", tuple(parties)), merger=parties[0], **named)


def role_of(data: Mapping[str, Aligned], task: VerticalMining) -> Any:
    async def role(session: Session) -> JointItemsets:
        lane = session.lane("task")
        return await verified.mine_aligned(lane, await agree(lane.lane("keys")), data[session.me], task)

    return role


# -- results -----------------------------------------------------------------------------------------------------------
@st.composite
def drawn_columns(draw: st.DrawFn) -> tuple[dict[str, dict[str, list[bool]]], int]:
    n = draw(st.integers(1, 40))
    bits = st.lists(st.booleans(), min_size=n, max_size=n) | st.sampled_from([[True] * n, [False] * n])
    parties = PARTIES[: draw(st.integers(3, 4))]
    return {party: {f"{party}c{k}=v": draw(bits) for k in range(draw(st.integers(0, 3)))} for party in parties}, n


@pytest.mark.parametrize("disclose", ["supports", "frequent"])
@given(drawn_columns(), st.integers(1, 6), st.data())  # each of them a whole job
@examples(2, 10)
def test_equals_mining_the_joined_table(disclose: str, case: Any, least: int, data: st.DataObject) -> None:
    found, n = case
    parties = tuple(found)
    first, second, helper = data.draw(st.permutations(parties))[:3]
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    task = task_for(
        parties, min(least, n), compute=(first, second), helper=helper, learners=learners, disclose=disclose
    )
    columns = {party: columns_of(found[party], [True] * n, everywhere=True) for party in parties}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verified, "at_once", lambda rows: data_step)
        data_step = data.draw(st.sampled_from([8, 1000]))
        results = run_parties(parties, role_of(columns, task), declared=openings(task, parties), deadline_s=240)
    joined = [[item for party in parties for item, bits in found[party].items() if bits[row]] for row in range(n)]
    assert_mined(results, joined, task)


@pytest.mark.parametrize("n_parties", [3, 4])
def test_a_job_finds_what_the_semi_honest_one_finds_and_sends_what_is_planned(n_parties: int) -> None:
    parties = PARTIES[:n_parties]
    contents: dict[str, Any] = {"itemsets": {"min_support": "0.4"}}
    spec, data = job(parties, **contents, trust=TRUST), tables(parties, 60, n_parties)
    compare(spec, data)
    results = [asyncio.run(simulate_job(each, data, seed=3)) for each in (spec, job(parties, **contents))]
    found, expected = (sorted((sorted(s), n) for s, n in each.finding.itemsets.rows()) for each in results)
    assert found == expected
    assert max(len(itemset) for itemset, _ in found) > 2


def test_a_party_that_has_ids_alone_computes_beside_two_with_columns() -> None:
    """More ids than are common, in another order; the result is that of the two by themselves."""
    pair, contents = PARTIES[:2], {"itemsets": {"min_support": "0.4"}}
    data = tables(pair, 60, 2)
    ids = sorted({row for table in cells_of(pair, 60, 2).values() for row in table["id"].to_pylist()})
    register = table_from_arrow(pa.table({"id": [*ids, "nobody else's"]}), ["id"], "the test")
    spec = job(PARTIES[:3], **contents, trust=TRUST)
    checked = asyncio.run(simulate_job(spec, {**data, "east": register}, seed=3))
    alone = asyncio.run(simulate_job(job(pair, **contents), data, seed=3))
    found, expected = (sorted((sorted(s), n) for s, n in each.finding.itemsets.rows()) for each in (checked, alone))
    assert found == expected
    assert max(len(itemset) for itemset, _ in found) > 1


# -- what is refused, and what is stated -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "tables",
    [
        {"trust": {"security": "malicious"}},
        {"align": {"mode": "union"}},
        {"itemsets": {"min_support": 2, "engine": "paillier"}},
        {"itemsets": {"min_support": 2, "disclose": "candidates"}},
        {"itemsets": {"min_support": 2, "disclose": "frequent"}, "rules": {"min_confidence": "0.5"}},
    ],
)
def test_what_is_not_checked_is_refused(tables: dict[str, Any]) -> None:
    with fails("E100"):
        job(PARTIES[:3], **({"itemsets": {"min_support": 2}, "trust": TRUST} | tables))


def test_two_parties_are_refused() -> None:
    with fails("E100"):
        job(PARTIES[:2], itemsets={"min_support": 2}, trust={"helper": "coordinator", "security": "malicious"})


def test_one_engine_alone_is_checked() -> None:
    spec = job(PARTIES[:3], itemsets={"min_support": 2}, trust=TRUST)
    kind = kind_of(spec)
    assert (kind.engine(spec), kind.helper(spec), kind.resumes(spec)) == ("replicated", "east", False)
    assert "products are checked" in str(kind.engine_reason(spec))
    answers = {name: Answer(party=name, n_rows=50, speed=SPEED, certificate_bytes=0) for name in PARTIES[:3]}
    assert [each.engine for each in estimate(spec, answers, 0.001).engines] == ["replicated"]


@pytest.mark.parametrize(("disclose", "recipients"), [("supports", ["south"]), ("frequent", ["all"])])
def test_all_that_is_opened_is_stated_and_the_other_way_round(disclose: str, recipients: list[str]) -> None:
    """The ledger lets nothing else leave; what is stated leaves, in no greater number, and to learners alone."""
    parties, frames = PARTIES[:3], list[Frame]()
    spec = job(parties, recipients, itemsets={"min_support": "0.4", "disclose": disclose}, trust=TRUST)
    run_still(run_job(spec, tables(parties, 40, 3), InlineExecutor(), seed=1, observe=frames.append))
    declared = {line.label: line for line in statement(spec).declared}
    sent = Counter[tuple[str, str, str]]()
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.last:
            message = Opening.FromString(frame.body)
            assert frame.receiver in declared[message.label].recipients
            sent[frame.sender, frame.receiver, message.label] += message.number
    assert {label for _, _, label in sent} == set(declared)
    assert all(number <= declared[label].maximum for (_, _, label), number in sent.items())
    assert {receiver for _, receiver, label in sent if label == "supports"} <= set(spec.learners)
    assert "south, if it deviates" not in statement(spec).adversary
    assert "malicious: one of north, south and east" in statement(spec).adversary


# -- parties that deviate ----------------------------------------------------------------------------------------------
def held_by(parties: Sequence[str], seed: int) -> dict[str, Table]:
    """Tables of which most rows are common."""
    return {party: table_from_arrow(cells, ["id"], "the test") for party, cells in cells_of(parties, 24, seed).items()}


class Attacked:
    """A job on tables, and what it finds."""

    def __init__(self, parties: Sequence[str], seed: int) -> None:
        self.tables, self.task = held_by(parties, seed), task_for(parties, 5)
        self.expected = next(iter(run_parties(parties, self.role, declared=self.declared, deadline_s=240).values()))
        assert len(self.expected[1]) > 5

    async def role(self, session: Session) -> tuple[int, Any]:
        found = await verified.mine(session.lane("task"), self.tables[session.me], self.task)
        assert found.itemsets is not None
        return found.n_rows, sorted((sorted(itemset), count) for itemset, count in found.itemsets.rows())

    @property
    def declared(self) -> Any:
        return openings(self.task, tuple(self.tables))

    def by(self, deviating: Sequence[str], alter: Any, seed: int) -> Ends:
        return run_deviating(tuple(self.tables), self.role, deviating, alter, declared=self.declared, seed=seed)


DEVIATING: dict[int, list[tuple[str, ...]]] = {
    3: [("north",), ("south",), ("east",)],
    4: [("north", "west"), ("south",), ("west",)],
}


@cache
def attacked(parties: int) -> Attacked:
    return Attacked(PARTIES[:parties], parties)


@pytest.mark.parametrize("parties", [3, 4])
def test_one_altered_message_is_noticed_or_changes_nothing(parties: int) -> None:
    """Whichever message, of whichever party; no honest one is ever blamed. By hand: `attacks(…)` with more seeds."""
    assert attacks(parties, range(6)) > 2


def attacks(parties: int, seeds: range) -> int:
    """How many of these attacks were noticed.

    A party that alters what it programs takes ids out, as if it did not have them: then fewer rows are common.
    """
    found, sent, job = 0, dict[Any, int](), attacked(parties)
    for seed in seeds:
        chance = random.Random(seed)
        deviating = chance.choice(DEVIATING[parties])
        if deviating not in sent:
            counter = OneAltered(-1, 0)
            assert not job.by(deviating, counter, 0).errors
            sent[deviating] = counter.sent
        alter = OneAltered(chance.randrange(sent[deviating]), seed)
        ends = job.by(deviating, alter, seed)
        without = [name for name, error in ends.errors.items() if error.code == "E101"]  # no id is left
        errors = {name: error for name, error in ends.errors.items() if name not in without}
        fewer = [result for result in ends.results.values() if is_of_fewer_rows(result, job.expected)]
        assert len({repr(result) for result in ends.results.values()}) <= 1
        found += assert_caught_or_right(replace(ends, errors=errors), deviating, job.expected, *fewer) or bool(without)
    return found


def is_of_fewer_rows(result: tuple[int, Any], expected: tuple[int, Any]) -> bool:
    """Whether it may be that of some of the rows: with the same c, of fewer itemsets, and none more often."""
    counts = {tuple(itemset): number for itemset, number in expected[1]}
    return result[0] < expected[0] and all(number <= counts[tuple(itemset)] for itemset, number in result[1])


def altered(kind: type[Message], lane: str, change: Callable[[Any], None], receiver: str | None = None) -> Any:
    """Alters the messages of a type on some lanes, those to one receiver or to all."""

    def alter(frame: Frame) -> list[Frame]:
        if frame.type != kind.DESCRIPTOR.full_name or lane not in frame.lane or receiver not in (None, frame.receiver):
            return [frame]
        changed, message = Frame(), kind.FromString(frame.body)
        changed.CopyFrom(frame)
        change(message)
        changed.body = message.SerializeToString()
        return [changed]

    return alter


def _fewer_common(message: Any) -> None:
    """Leaves the last of the common rows out."""
    if message.label == "intersection-size":
        (size,) = np.frombuffer(message.values, np.uint64)
        message.values = np.array([size - 1], np.uint64).tobytes()
    elif message.label == "intersection":
        message.number, message.values = message.number - 1, message.values[:-16]


def test_a_merger_that_tells_two_parties_different_rows_is_noticed() -> None:
    """Each of the two holds all that it is told."""
    job = attacked(3)
    ends = job.by(["north"], altered(Opening, "intersection", _fewer_common, "south"), 1)
    assert not ends.results
    assert assert_caught_or_right(ends, ["north"], None)


def test_a_merger_that_names_ids_that_are_not_common_learns_nothing_of_who_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether both, one or none of the others hold an id that it names in place of a common one: all end alike."""
    job, real, keys = Attacked(PARTIES[:3], 2), zero_shares.session_key, list[bytes]()
    ids = {party: set(each.row_ids(job.task.normalisation)) for party, each in job.tables.items()}

    def known(lane: Session) -> bytes:
        keys.append(real(lane))
        return keys[-1]

    monkeypatch.setattr(zero_shares, "session_key", known)
    named = {
        "both": ids["south"] & ids["east"] - ids["north"],
        "south": ids["south"] - ids["east"],
        "east": ids["east"] - ids["south"],
        "none": {b"nobody"},
    }
    said = set()
    for candidates in named.values():
        assert candidates
        chosen = min(candidates)

        def another(message: Any, chosen: bytes = chosen) -> None:
            if message.label == "intersection":
                message.values = points_of([chosen], keys[-1]).tobytes() + message.values[16:]

        ends = job.by(["north"], altered(Opening, "intersection", another), 1)
        assert not ends.results
        assert assert_caught_or_right(ends, ["north"], None)
        said.add(tuple(sorted((name, error.message) for name, error in ends.errors.items())))
    assert len(said) == 1
    assert len(said.pop()) == 2


def test_a_party_that_names_other_items_to_one_than_to_another_is_noticed() -> None:
    job = attacked(3)

    def renamed(message: Any) -> None:
        if len(message.values) > 12:
            message.values = message.values[:-1] + b"?"

    ends = job.by(["east"], altered(Opening, "/items", renamed, "north"), 1)
    assert not ends.results
    assert assert_caught_or_right(ends, ["east"], None)


def test_a_party_that_names_an_item_that_is_not_frequent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    job, real = attacked(3), verified.agreed_count

    def lower(*args: Any, me: str, **options: Any) -> int:
        return real(*args, me=me, **options) if me != "south" else 1

    monkeypatch.setattr(verified, "agreed_count", lower)
    ends = job.by(["south"], unaltered, 1)
    assert not ends.results
    assert {error.party for error in ends.errors.values()} == {"south"}


def test_an_item_of_another_party_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job, real = attacked(3), verified.open_names

    async def stolen(session: Session, label: str, names: Sequence[str], *checks: Any) -> Any:
        mine = [name.replace("east", "north") for name in names] if session.me == "east" else names
        return await real(session, label, mine, *checks)

    monkeypatch.setattr(verified, "open_names", stolen)
    ends = job.by(["east"], unaltered, 1)
    assert not ends.results
    assert assert_caught_or_right(ends, ["east"], None)
