"""Turns at all parties of a job, asked for at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from coordinator.jobs.turns import turns
from link.errors import DeadlineExceeded


class Asked:
    """A party that is asked for its turn."""

    def __init__(self, party: str, error: Exception | None = None) -> None:
        self.party, self.error = party, error
        self.waiting = asyncio.Event()
        self.left = False

    async def queue(self, job_id: bytes, *, wait: bool) -> AsyncGenerator[int]:
        try:
            self.waiting.set()
            if self.error is not None:
                raise self.error
            await asyncio.Event().wait()
            yield 0
        finally:
            self.left = True


def test_what_ends_a_job_at_one_party_is_told_while_another_is_asked() -> None:
    async def test() -> None:
        slow = Asked("north")
        ended: dict[str, Any] = {"north": slow, "south": Asked("south", DeadlineExceeded("it expired", party="south"))}
        with pytest.raises(DeadlineExceeded):
            async with turns(ended, b"job", lambda party, error: None, lambda *told: None):
                raise AssertionError("it is nobody's turn")
        assert slow.left

    asyncio.run(test())
