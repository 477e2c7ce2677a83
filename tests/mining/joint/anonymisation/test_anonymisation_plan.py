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
from protos.v1.plan_pb2 import Speed
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, parted, people
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job

pytestmark = pytest.mark.turn(3)

SPEED = Speed(
    multiply_s=3e-5, embed_s=3e-5, byte_s=1e-9, frame_byte_s=1e-9, frame_s=1e-5, transfer_s=2e-7, candidate_s=1e-6
)
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


def test_what_is_not_known_at_most_is_said() -> None:
    asked = planned(job(keys="union"), [100] * 3)
    assert asked.rounds_at_most is None
    assert "nothing says how much it is at most" in " ".join(asked.assumptions)
    for plan in (asked, planned(job(), [100] * 3), planned(job(algorithm="mondrian"), [100] * 3)):
        assert "As measured on the Adult table" in " ".join(plan.assumptions)
    columns = planned(vertical_job(PARTIES[:2]), [100] * 2)
    assert columns.is_least
    assert in_all(columns).startswith("In all at least ")
    assert Plan.from_data(asked.as_data()) == asked
