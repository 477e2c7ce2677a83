"""Plans of joint releases: what a job costs lies between what its plan says, and a plan that cannot know says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import comine
from coordinator.cli.jobs.plan import in_all
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.plan.plan import Plan
from jobs.spec.job import JobSpec
from mining.joint.anonymisation.vertical.course import expected_lost
from protos.v1.plan_pb2 import Speed
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, Cells, parted, people
from tests.mining.joint.anonymisation.vertical_anonymisation_world import GroupedPeople
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job
from tests.traffic import within

pytestmark = pytest.mark.turn(3)

SPEED = Speed(multiply_s=3e-5, byte_s=1e-9, frame_byte_s=1e-9, frame_s=1e-5, transfer_s=2e-7, candidate_s=1e-6)
KINDS = ("bytes_sent", "bytes_received")


def planned(spec: JobSpec, rows: list[int | None]) -> Plan:
    answers = {party: Answer(party, SPEED, 0, number) for party, number in zip(spec.job.parties, rows, strict=True)}
    return estimate(spec, answers, 0.001)


@pytest.mark.slow
@pytest.mark.turn(7)
@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (3, {}),
        (2, {"max_suppression": "0.2"}),
        (5, {"max_suppression": "0.2", "insider_k": 2, "insiders": 2}),
        (3, {"algorithm": "samarati", "max_suppression": "0.1", "insider_k": 2}),
        (3, {"insider_k": 3, "model": {"k": 5, "p": 2}}),
        (2, {"model": {"k": 3, "t": {"distance": "equal", "value": "0.5"}}, "max_suppression": "0.3"}),
        (3, {"model": {"k": 3, "l": {"kind": "recursive", "value": 3, "c": 2}}}),
        (3, {"origin": "shown", "k_site": 2, "max_suppression": "0.3"}),
        (2, {"disclose": "node", "max_suppression": "0.2"}),
        (5, {"disclose": "node", "insider_k": 2, "model": {"k": 3, "p": 2}}),
        (2, {"algorithm": "mondrian"}),
        (4, {"algorithm": "mondrian", "insider_k": 2, "model": {"k": 3, "p": 2}}),
        (3, {"union": {"bound": 64}, "recipients": ("north",)}),
    ],
)
def test_a_job_costs_between_what_its_plan_says(number: int, changes: dict[str, Any]) -> None:
    rows, parties = 30 * number, PARTIES[:number]
    spec = job(parties, **changes)
    plan = planned(spec, [30] * number)
    costs = comine.simulate(spec, parted(people(rows, number), np.arange(rows) % number, parties)).parties
    assert plan.is_least
    assert plan.rounds_at_most is not None
    for party, actual in costs.items():
        expected = plan.parties[party]
        for kind in KINDS:
            most = getattr(expected, f"{kind}_at_most")
            assert getattr(expected, kind) <= getattr(actual, kind) <= most, (party, kind)
        assert plan.rounds <= actual.rounds <= plan.rounds_at_most
    assert plan.compare(costs) == {}
    assert in_all(plan).startswith("In all between ")


def test_an_exhaustive_search_is_planned_closely() -> None:
    """Which nodes are examined is public there, so no factor of a hundred is between the least and the most."""
    levels = [[str(leaf), *(str(leaf >> shift) for shift in (1, 2, 3)), "*"] for leaf in range(16)]
    names = [f"q{number}" for number in range(4)]
    columns = {"ill": {"values": ["flu"]}}
    spec = job(
        quasi_identifiers=names, hierarchies=dict.fromkeys(names, levels), columns=columns, disclose="node", insider_k=2
    )
    plan = planned(spec, [1000] * 3)
    assert plan.bytes_sent_at_most is not None
    assert plan.bytes_sent_at_most < 10 * plan.bytes_sent


def test_who_hides_its_rows_may_have_none_or_as_many_as_the_bound_says() -> None:
    hidden = planned(job(), [100, None, None])
    assert (hidden.rounds_at_most, hidden.seconds_at_most, hidden.bytes_sent_at_most) == (None, None, None)
    assert "hides its number of rows" in " ".join(hidden.assumptions)
    assert in_all(hidden).startswith("In all at least ")
    bounded = planned(job(union={"bound": 128}), [100, None, None])
    exact = planned(job(union={"bound": 128}), [128] * 3)
    assert bounded.bytes_sent_at_most is not None
    assert exact.bytes_sent_at_most is not None
    assert bounded.bytes_sent_at_most <= exact.bytes_sent_at_most


def even_people(n_rows: int, seed: int) -> Cells:
    """Rows in all classes alike, as plans of columns take them to be."""
    draw = np.random.default_rng(seed)
    return people(n_rows, seed) | {
        "age": list(map(str, draw.integers(0, 10, n_rows).tolist())),
        "town": [("A", "B", "C")[each] for each in draw.integers(0, 3, n_rows).tolist()],
    }


@pytest.mark.parametrize(
    ("members", "grouped", "skewed", "changes"),
    [
        ((1, 1), False, False, {"max_suppression": "0.1"}),
        ((1, 1), False, True, {"max_suppression": "0.1"}),
        ((1, 1), False, False, {"model": {"k": 3, "p": 2}}),
        ((1, 1, 1), False, False, {"recipients": ("north",)}),
        ((2, 1), True, False, {}),
    ],
)
def test_a_release_of_columns_sends_what_is_planned(
    members: tuple[int, ...], grouped: bool, skewed: bool, changes: dict[str, Any]
) -> None:
    n_rows = 700
    cells, turns = (people if skewed else even_people)(n_rows, 5), len(members)
    held = {"age": 0, "town": 1, "sex": 2 % turns, "ill": 0, "note": 1}
    made = GroupedPeople(cells, members, held, [np.arange(n_rows) % each for each in members])
    spec = made.job(**changes) if grouped else vertical_job(made.parties, **changes)
    tables = made.tables()
    plan = planned(spec, [tables[party].n_rows for party in spec.job.parties])
    actual = comine.simulate(spec, tables).parties
    assert not plan.is_least
    for party, costs in actual.items():
        for kind in KINDS:
            assert within(getattr(plan.parties[party], kind), getattr(costs, kind), len(actual) - 1), (party, kind)
        assert costs.rounds == pytest.approx(plan.rounds, rel=0.15)
    assert "evenly" in " ".join(plan.assumptions)


def test_how_many_rows_lie_in_small_classes_is_what_is_to_be_expected() -> None:
    """The mean of 400 draws of 300 rows in 60 classes is off by more than six of its standard deviations never."""
    draw = np.random.default_rng(1)
    sizes = np.stack([np.bincount(draw.integers(0, 60, 300), minlength=60) for _ in range(400)])
    lost = np.where(sizes < 4, sizes, 0).sum(axis=1)
    assert abs(lost.mean() - expected_lost(300, 60, 4)) < 6 * lost.std() / 20
    assert expected_lost(300, 60, 1) == 0


def test_a_plan_of_columns_says_where_it_knows_the_least_alone() -> None:
    few = planned(vertical_job(PARTIES[:2]), [2, 2])
    assert few.is_least
    assert "too few rows" in " ".join(few.assumptions)
    hidden = planned(vertical_job(PARTIES[:2]), [None, None])
    assert in_all(hidden).startswith("In all at least ")
    assert "alignment alone, the smaller part" in " ".join(hidden.assumptions)
    levels = [[str(leaf), *(str(leaf >> shift) for shift in range(1, 10)), "*"] for leaf in range(512)]
    names = [f"q{number}" for number in range(4)]
    large = vertical_job(
        PARTIES[:2],
        quasi_identifiers=names,
        hierarchies=dict.fromkeys(names, levels),
        columns={"ill": {"values": ["flu"]}, "note": {"most_bytes": 6}},
    )
    plan = planned(large, [1000, 1000])
    assert plan.is_least
    assert "too large" in " ".join(plan.assumptions)


def test_what_is_not_known_at_most_is_said() -> None:
    asked = planned(job(keys="union"), [100] * 3)
    assert asked.rounds_at_most is None
    assert "nothing says how much it is at most" in " ".join(asked.assumptions)
    for plan in (asked, planned(job(), [100] * 3), planned(job(algorithm="mondrian"), [100] * 3)):
        assert "As measured on the Adult table" in " ".join(plan.assumptions)
    assert Plan.from_data(asked.as_data()) == asked
