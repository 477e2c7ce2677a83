"""Jobs of two nodes that go on: proposed, approved, begun, held."""

from __future__ import annotations

import os
import time
from typing import Any, Final

from party.desk import at_desk
from party.policy.inbox import find
from protos.v1 import control_pb2 as control
from tests.party.console.world import PARTIES, World
from tests.party.nodes import weekly

HELD: Final = "held for release by its party"


async def proposed(north: World, **changes: Any) -> tuple[str, control.SignedApproval]:
    """A job that both parties are asked for; its id, and the approval of south."""
    spec = weekly(parties=list(PARTIES), recipients=["all"], **changes)
    nonce, expiry = os.urandom(16), int(time.time()) + 600
    decided = [await north.nodes.clients[name].decide(spec, nonce, expiry) for name in PARTIES]
    assert decided[1][1] is not None
    return decided[0][0].hex(), decided[1][1]


async def begun(north: World, **changes: Any) -> str:
    """A job that two people of north have approved, or one where that is enough, and that runs."""
    job, approval = await proposed(north, **changes)
    with at_desk(north.file) as desk:
        for name in ("anna", "adam"):
            if (record := find(desk.store, job)).state == control.AWAITING_APPROVAL:
                desk.decide(record, name)
    await started(north, job, approval)
    return job


async def started(north: World, job: str, approval: control.SignedApproval) -> None:
    """Begins a job that north has approved, too."""
    own = (await north.comes(job, control.APPROVED)).approval
    await north.nodes.all(lambda client: client.start(bytes.fromhex(job), [own, approval]))


async def held(north: World, job: str) -> None:
    """Returns once north holds the result of a job."""
    watched = north.nodes.clients["north"].stub.Watch(control.WatchRequest(job_id=bytes.fromhex(job)))
    async for event in watched:
        assert event.state == control.RUNNING, event
        if event.step == HELD:
            return
