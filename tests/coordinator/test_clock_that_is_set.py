"""A clock that is set while a job runs makes good certificates look expired, and no holder guilty."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import grpc
import pytest

from coordinator.node_client import NodeClient
from link.errors import IdentityError
from link.pki import identity
from link.pki.authority import Authority
from link.pki.identity import Member
from link.session import Session
from link.transcripts.receipts import Receipts
from tests.world import run_parties

AUTHORITY = Authority.create()
ISSUED = {name: AUTHORITY.issue(name) for name in ("a", "b")}


class Later(dt.datetime):
    """The time by a clock that was set forward by years."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        return super().now(tz) + dt.timedelta(days=9000)


def test_a_session_goes_on_to_its_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the greeting has found good until the deadline stays good."""

    async def role(session: Session) -> int:
        core, (peer,) = session.core, session.others
        core.members[peer] = Member.of(ISSUED[peer].trust, ISSUED[peer].certificate_pem, "party", peer)
        with monkeypatch.context() as clock:
            clock.setattr(identity.dt, "datetime", Later)
            with pytest.raises(IdentityError):
                core.members[peer].check()
            receipts = Receipts(session, ISSUED[session.me])
            await receipts.exchange()
        return len(receipts.accounts())

    assert run_parties(("a", "b"), role) == {"a": 1, "b": 1}


class Refusal(grpc.aio.AioRpcError):
    """What a node answers whose clock is ahead of the coordinator's."""

    def __init__(self, message: str) -> None:
        said = grpc.aio.Metadata(("comine-code", "E201"), ("comine-party", "hub"))
        super().__init__(grpc.StatusCode.UNAUTHENTICATED, grpc.aio.Metadata(), said, message)


def test_a_node_that_takes_the_coordinator_for_expired_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = AUTHORITY.issue("hub", "coordinator")
    member = Member.of(hub.trust, hub.certificate_pem, "coordinator", "hub")
    with monkeypatch.context() as clock:
        clock.setattr(identity.dt, "datetime", Later)
        with pytest.raises(IdentityError) as raised:
            member.check()
    expired = raised.value.message

    async def explained() -> None:
        async with NodeClient(hub, "south", "127.0.0.1:1") as client:
            ahead, revoked = (client.explain(Refusal(said)) for said in (expired, "the certificate of hub was revoked"))
        assert (ahead.code, ahead.party, revoked.party) == ("E201", "south", "hub")

    asyncio.run(explained())
