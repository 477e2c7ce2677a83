"""What mining by perturbed records sends follows from public parameters and numbers of records."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.documents.budget import Amounts
from jobs.kinds.charge import charge
from jobs.loading import job_of
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from link.executor import ThreadExecutor
from link.traffic import TOLERANCE
from protos.v1.plan_pb2 import Speed
from tests.coordinator.simulation.whole_job import identities, run_job
from tests.mining.joint.oracle import Rows

pytestmark = pytest.mark.turn(6)

ITEMS = [f"item {i:02d}" for i in range(60)]
SPEED = Speed(multiply_s=6e-5, byte_s=1e-9, frame_byte_s=3e-9, frame_s=2e-5, candidate_s=5e-7, row_s=5e-7)


def rows(seed: int, number: int) -> Rows:
    """Baskets of a few items, the first ones common."""
    random = np.random.default_rng(seed)
    shares = 0.9 / np.arange(1, len(ITEMS) + 1) ** 0.7
    return [[ITEMS[at] for at in np.flatnonzero(random.random(len(ITEMS)) < shares)] for _ in range(number)]


DATA = {"north": rows(1, 900), "south": rows(2, 600), "east": rows(3, 750), "west": rows(4, 300)}


def job(model: str, *, recipients: tuple[str, ...] = ("all",), **changes: Any) -> JobSpec:
    privacy = {"model": model, "epsilon": "2", **({"delta": "1e-6"} if model == "shuffle" else {})}
    privacy |= {key: changes.pop(key) for key in ("shufflers", "analyst", "search", "colluding") if key in changes}
    contents = {
        "job": {
            "name": "test",
            "task": "itemsets",
            "parties": list(DATA),
            "dataset": "baskets",
            "partition": "hybrid",
            "recipients": list(recipients),
        },
        "itemsets": {"top_k": 16, "universe": "items.txt", "catalogue": ITEMS, **changes},
        "privacy": privacy,
    }
    return job_of(contents, "the test", Path())


def answers(left: Amounts | None = None, *, hidden: tuple[str, ...] = ()) -> dict[str, Answer]:
    return {
        party: Answer(
            party=party,
            n_rows=None if party in hidden else len(data),
            speed=SPEED,
            certificate_bytes=len(identities(tuple(DATA))[party].certificate_pem),
            left=left if party == "north" else None,
        )
        for party, data in DATA.items()
    }


@pytest.mark.parametrize(
    "spec",
    [
        job("local", analyst="east", recipients=("coordinator", "south")),
        job("local", max_length=1, search="ldp-miner", recipients=("coordinator",)),
        job("shuffle"),
        job("shuffle", shufflers=["west", "south", "east"], max_length=1, min_support="0.2"),
    ],
    ids=lambda spec: f"{spec.privacy.model}-{len(spec.shufflers)}-{spec.itemsets.max_length}",
)
def test_a_plan_predicts_the_bytes_and_rounds_of_a_run(spec: JobSpec) -> None:
    executor = ThreadExecutor(2)
    runs = asyncio.run(run_job(spec, DATA, executor))
    executor.close()
    plan = estimate(spec, answers(), 0.001)
    assert plan.rounds == max(run.costs.rounds for run in runs.values() if isinstance(run, PartyRun))
    for party, run in runs.items():
        assert isinstance(run, PartyRun), run
        assert plan.parties[party].bytes_sent == pytest.approx(run.costs.bytes_sent, rel=TOLERANCE), party
        assert plan.parties[party].bytes_received == pytest.approx(run.costs.bytes_received, rel=TOLERANCE), party
        spent = run.outcome.spent
        assert plan.privacy is not None
        assert spent is not None
        told = plan.privacy.model_dump(exclude={"noise", "charge", "model"})
        assert told == {key: getattr(spent, key) for key in told}
        cost = charge(spec)  # of which a run never spends more
        assert cost.epsilon is not None
        assert cost.local_epsilon is not None
        assert spent.epsilon <= float(cost.epsilon)
        assert spent.delta <= float(cost.delta or 0)
        assert spent.local_epsilon is not None
        assert spent.local_epsilon <= float(cost.local_epsilon)


def test_a_plan_tells_what_a_record_is_charged_and_what_a_party_says_is_left() -> None:
    plan = estimate(job("shuffle"), answers(Amounts(epsilon="3.5", local_epsilon="40", delta=None)), 0.001)
    assert plan.privacy is not None
    assert plan.privacy.charge.model_dump() == {"local_epsilon": "8", "epsilon": "2", "delta": "0.000001"}
    assert plan.privacy.n is not None
    left = plan.parties["north"].left
    assert left is not None
    assert left.model_dump() == {"local_epsilon": "40", "epsilon": "3.5", "delta": None}
    assert plan.parties["south"].left is None
    assert plan.from_data(plan.as_data()) == plan
    prose = " ".join(plan.privacy.prose())
    assert f"among {plan.privacy.n:,} reports of parties that collude with nobody" in prose
    assert "Each party's ledger is charged epsilon 2, delta 0.000001, local epsilon 8" in prose


@pytest.mark.parametrize(
    ("model", "more", "told"),
    [
        (
            "shuffle",
            {},
            "twice the epsilon, or twice the rows at the smaller parties, adds some 0.7 to what a report may",
        ),
        (
            "local",
            {"search": "wheel"},
            "Rows of more than 8 items are cut to 8, and by how much that lowers supports is",
        ),
    ],
)
def test_a_plan_says_what_bounds_the_result(model: str, more: dict[str, str], told: str) -> None:
    lines = " ".join(estimate(job(model, **more), answers(), 0.001).assumptions)
    assert told in lines
    assert told not in " ".join(estimate(job("local"), answers(), 0.001).assumptions)


def test_more_colluders_leave_fewer_reports_to_hide_among() -> None:
    found = [estimate(job("shuffle", colluding=t), answers(), 0.001).privacy for t in (1, 2, 3)]
    hidden = [each.n for each in found if each is not None and each.n is not None]
    assert hidden[0] > hidden[1] > hidden[2]


def test_who_hides_its_rows_is_taken_to_be_like_the_others() -> None:
    plan = estimate(job("local"), answers(hidden=("north",)), 0.001)
    assert plan.n_rows == 1650 + 550
    assert any(line.startswith("north: the number of rows is hidden") for line in plan.assumptions)
    nobody = estimate(job("local"), answers(hidden=tuple(DATA)), 0.001)
    assert nobody.n_rows is None
    assert nobody.bytes_sent > plan.bytes_sent
