"""A shuffler goes on forwarding whatever the next one answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from party.services.shuffler.forwarding import Forwarder
from protos.v1.shuffle_pb2 import ForwardReceipt
from tests.errors import fails


@pytest.mark.parametrize("answers", [[], [None], [None, ForwardReceipt(batch=7)], [ForwardReceipt(batch=8)]])
def test_what_is_no_receipt_for_a_batch_is_an_error_that_is_tried_again(answers: list[ForwardReceipt | None]) -> None:
    """gRPC gives nothing in the place of bytes that are no answer."""

    async def told(_: object) -> AsyncIterator[ForwardReceipt | None]:
        for answer in answers:
            yield answer

    unused: Any = None
    forwarder = Forwarder(unused, {}, unused, unused, unused, unused)
    pool: Any = SimpleNamespace(route=SimpleNamespace(name="weekly"))
    with fails("E100"):
        asyncio.run(forwarder.forward(SimpleNamespace(Forward=told), pool, "south", 7))
