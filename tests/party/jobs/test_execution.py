"""What a node has lent a job is given back, however the job ends before its session."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

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
    for name in ("charged", "release_begun", "_hidden"):
        monkeypatch.setattr(execution, name, lambda *_: ())
    monkeypatch.setattr(execution, "Started", SimpleNamespace(of=lambda *_: None))

    async def with_data(*_: Any) -> str:
        assert not lent.closed
        return "run"

    monkeypatch.setattr(execution, "_with_data", with_data)

    async def test() -> None:
        async def record(*_: object) -> None:
            if ends == "unwritten":
                raise ResourceError("the disk is full")

        async def load(name: str, **_: Any) -> PartitionedRows:
            if ends == "cancelled":
                running.cancel()
            return PartitionedRows(lent, (), np.zeros(0, np.int64), b"")

        context: Any = SimpleNamespace(
            audit=SimpleNamespace(mark=lambda: None, record=record),
            sources=SimpleNamespace(load=load),
            ledger=None,
            releases=None,
        )
        job: Any = SimpleNamespace(id=bytes(32), spec=weekly(), began_after=None)
        inner: Any = SimpleNamespace(attach=lambda _: None)
        transport = JobTransport(inner, bytes(32), "north", ("north", "south"))
        running = asyncio.ensure_future(execution.take_part(context, job, 1, (), transport))
        (found,) = await asyncio.gather(running, return_exceptions=True)
        expected = {"unwritten": ResourceError, "cancelled": asyncio.CancelledError, "no end": str}
        assert isinstance(found, expected[ends])
        assert lent.closed

    asyncio.run(test())
