"""What a node has lent a job is given back, however the job ends before its session."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import numpy as np
import pytest

from link.errors import ResourceError
from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block
from mining.partitioned.in_process import InProcess
from mining.partitioned.rows import PartitionedRows
from party.jobs import execution
from party.jobs.job_transport import JobTransport
from tests.party.nodes import weekly


class Lent(InProcess):
    """Blocks that know whether they were given back."""

    def __init__(self) -> None:
        super().__init__([lambda: Block.of(Transactions.empty())], [0])
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("ends", ["unwritten", "cancelled", "no end"])
def test_rows_are_given_back_where_the_job_ends_as_they_come(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lent = Lent()
    for name in ("charged", "release_begun", "journal_of"):
        monkeypatch.setattr(execution, name, lambda *_: ())
    monkeypatch.setattr(execution, "Started", SimpleNamespace(of=lambda *_: None))

    async def run_party(*_: Any, **__: Any) -> str:
        assert not lent.closed
        return "run"

    monkeypatch.setattr(execution, "run_party", run_party)

    async def test() -> None:
        async def record(*_: object) -> None:
            if ends == "unwritten":
                raise ResourceError("the disk is full")

        async def load(name: str, **_: Any) -> PartitionedRows:
            if ends == "cancelled":
                running.cancel()
            return PartitionedRows(lent, (), np.zeros(0, np.int64), b"")

        context = MagicMock(
            audit=SimpleNamespace(mark=lambda: None, record=record),
            sources=SimpleNamespace(load=load, rows=AsyncMock(), hidden_rules=lambda _: ()),
            noting=asyncio.Lock(),
        )
        context.consent.judge.check_data = AsyncMock()
        context.consent.judge.looks_at_rows.return_value = False
        job: Any = SimpleNamespace(id=bytes(32), spec=weekly(), progress=None, dealings=())
        inner: Any = SimpleNamespace(attach=lambda _: None)
        transport = JobTransport(inner, bytes(32), "north", ("north", "south"))
        running = asyncio.ensure_future(execution.take_part(context, job, 1, (), transport))
        (found,) = await asyncio.gather(running, return_exceptions=True)
        expected = {"unwritten": ResourceError, "cancelled": asyncio.CancelledError, "no end": str}
        assert isinstance(found, expected[ends])
        assert lent.closed

    asyncio.run(test())
