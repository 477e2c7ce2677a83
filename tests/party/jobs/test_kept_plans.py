"""Plans that are kept for whoever looks at a job again soon."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.plan.calibration import Speed
from jobs.spec.job import JobSpec
from party.config import PartyConfig
from party.jobs.planning import kept_plans
from party.jobs.planning.kept_plans import KEEP_S, MOST, KeptPlans
from party.jobs.planning.kept_speed import FRESH_S, KeptSpeed
from tests.party.files import write_federation
from tests.party.nodes import weekly


def test_a_job_is_planned_once_until_the_file_or_the_time_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    config = PartyConfig.load(tmp_path / "north.toml")
    clock, planned, measured = [1000.0], list[str](), list[Any]()

    def measure() -> Any:
        measured.append(object())
        return measured[-1]

    def plan(_: PartyConfig, spec: JobSpec, speed: Speed) -> str:
        assert speed is measured[0]
        planned.append(spec.job.name)
        return f"plan {len(planned)}"

    monkeypatch.setattr(kept_plans, "local_plan", plan)
    monkeypatch.setattr(kept_plans, "time", SimpleNamespace(monotonic=lambda: clock[0]))  # others' loops go by theirs
    plans, spec, other = KeptPlans(KeptSpeed(measure)), weekly(), weekly(name="other")
    assert [plans.plan(config, each) for each in (spec, other, spec)] == ["plan 1", "plan 2", "plan 1"]
    changed = config.model_copy(update={"dataset": ()})
    assert plans.plan(changed, spec) == "plan 3"
    assert len(measured) == 1
    clock[0] += KEEP_S + 1
    assert plans.plan(config, spec) == "plan 4"
    for number in range(MOST):
        plans.plan(config, weekly(name=f"job{number}"))
    assert plans.plan(config, spec) == f"plan {MOST + 5}"


def test_who_asks_for_the_speed_waits_for_the_first_measurement_alone() -> None:
    clock, may_end, measured = [0.0], threading.Event(), list[Any]()

    def measure() -> Any:
        if measured:
            may_end.wait()
        measured.append(object())
        return measured[-1]

    kept = KeptSpeed(measure, lambda: clock[0])
    first = kept.speed()
    clock[0] = FRESH_S + 1
    assert [kept.speed() for _ in range(3)] == [first] * 3  # while it is measured again, once
    (again,) = [thread for thread in threading.enumerate() if thread.name == "speed"]
    may_end.set()
    again.join()
    assert [kept.speed() for _ in range(2)] == [measured[1]] * 2
