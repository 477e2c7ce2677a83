"""A watch that loses its connection asks for what it missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from coordinator.frequency import watch as frequency_watch
from jobs.collections.estimates import Estimates
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import EstimateHead, FrequencyRequest, Round


def told(number: int, reports: int, *, final: bool) -> Estimates:
    head = EstimateHead(round=Round(number=number), reports=reports, final=final, kind="counts")
    return Estimates("north", head, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), ())


class Breaking:
    """A node whose connections break after some estimates each; it remembers from which round on it was asked."""

    def __init__(self, *connections: list[Estimates]) -> None:
        self._connections, self.asked = list(connections), list[int | None]()

    async def watch(self, _: Any, __: float, first: int | None = None) -> AsyncIterator[Estimates]:
        self.asked.append(first)
        for estimates in self._connections.pop(0):
            yield estimates
        if self._connections:
            raise ConnectionBroken("gone", party="north")


def test_what_ended_meanwhile_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequency_watch, "RETRY_S", 0.0)
    node = Breaking(
        [],
        [told(3, 10, final=False)],
        [told(3, 20, final=True), told(4, 5, final=True)],
        [told(5, 1, final=False)],
    )

    async def seen() -> list[tuple[int, bool]]:
        found: Any = frequency_watch.news_of(node, FrequencyRequest(), 1.0, lambda _: None)  # type: ignore[arg-type]
        return [(each.head.round.number, each.head.final) async for each in found]

    assert asyncio.run(seen()) == [(3, False), (3, True), (4, True), (5, False)]
    assert node.asked == [None, None, 3, 5]
