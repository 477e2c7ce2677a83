"""A party that closes a connection as it is made is called again, a few times."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordinator.jobs import preflight
from link.transports.grpc_errors import ConnectionBroken, ConnectionClosed


class Party:
    """Closes so many connections, and then answers, unless nothing listens there."""

    def __init__(self, closes: int, error: type[ConnectionBroken] = ConnectionClosed) -> None:
        self.left, self.error, self.calls = closes, error, 0

    async def describe(self) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error("closed", party="north")
        return "north"


def met(party: Any) -> Any:
    return asyncio.run(preflight.introduction_of(party))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "CLOSED_S", (0.0, 0.0))


def test_a_party_that_closed_the_connection_is_called_again() -> None:
    assert met(Party(2)) == "north"


def test_what_stays_closed_and_what_does_not_listen_is_told() -> None:
    for party, calls in ((Party(3), 3), (Party(1, ConnectionBroken), 1)):
        with pytest.raises(ConnectionBroken):
            met(party)
        assert party.calls == calls
