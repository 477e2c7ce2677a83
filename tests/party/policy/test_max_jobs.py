"""So many jobs may start within a period, also where several start at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.party.nodes import running, weekly


def test_jobs_that_start_at_once_do_not_pass_the_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path, policy="max_jobs = 1\n") as nodes:
            jobs = [await nodes.agree(weekly()) for _ in range(2)]
            host = nodes.nodes["north"].host
            judge, begun = host.context.consent.judge, []
            real = judge.decide

            def slow(*given: Any, **named: Any) -> Any:
                begun.append(real(*given, **named))
                time.sleep(0.2)  # long enough for the other to be judged, too, were it not made to wait
                return begun[-1]

            monkeypatch.setattr(judge, "decide", slow)
            north = nodes.clients["north"]
            ends = await asyncio.gather(*(north.start(*job) for job in jobs), return_exceptions=True)
            (end,) = [end for end in ends if end is not None]
            assert isinstance(end, grpc.aio.AioRpcError)
            assert "rule max_jobs" in str(end.details())
            assert len(begun) == 1
            for job_id, _ in jobs:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await north.cancel(job_id)

    asyncio.run(main())
