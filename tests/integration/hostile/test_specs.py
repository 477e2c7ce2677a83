"""What a job's specification can make long is worked out beside the event loop, where a node answers others."""

from __future__ import annotations

import asyncio
import functools
import threading
from pathlib import Path
from typing import Any

import pytest

from jobs.loading import job_of
from jobs.spec.job import JobSpec
from protos.v1 import control_pb2 as control
from protos.v1.plan_pb2 import EstimateRequest
from tests.party.nodes import running, weekly

FROM_A_SPEC = (
    "jobs.run.statement",
    "jobs.kinds.rows.kind.horizontal_mining",
    "jobs.kinds.noisy.kind.distributed_mining",
    "party.policy.consent.job_from_canonical",
    "party.jobs.planning.estimate.job_from_canonical",
)


def noisy() -> JobSpec:
    contents = weekly().model_dump(mode="json", by_alias=True)
    contents["privacy"] = {"model": "distributed", "epsilon": "2", "delta": "1e-6"}
    contents["itemsets"] |= {"catalogue": [f"item{at:02d}" for at in range(40)], "exclude": ["other*"]}
    return job_of(contents, "job.toml", Path())


def test_no_statement_or_task_is_made_on_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,000 patterns and a long catalogue either takes the better part of a minute."""
    made: dict[str, set[bool]] = {}

    def watched(name: str, function: Any) -> Any:
        @functools.wraps(function)
        def call(*given: Any) -> Any:
            made.setdefault(name, set()).add(threading.current_thread() is threading.main_thread())
            return function(*given)

        return call

    specs = (weekly(), noisy())  # checked here, before anybody watches
    for name in FROM_A_SPEC:
        module, _, function = name.rpartition(".")
        real = getattr(__import__(module, fromlist=[function]), function)
        monkeypatch.setattr(name, watched(name, real))

    async def test() -> None:
        async with running(tmp_path) as nodes:
            for spec in specs:
                _, ends = await nodes.run(spec)
                assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
                await nodes.clients["north"].stub.Estimate(EstimateRequest(spec=spec.canonical()))

    asyncio.run(test())
    assert made == {name: {False} for name in FROM_A_SPEC}
