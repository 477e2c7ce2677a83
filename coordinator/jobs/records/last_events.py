"""What the parties of a job that ended early last said of it: kept, since nobody asks them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from coordinator.jobs.client import CANCEL_S, PartyClient
from coordinator.jobs.records.store import LastEvent
from link.errors import ComineError
from protos.v1.control_pb2 import JobEvent, JobState

NAMES: Final = {number: name.lower().replace("_", "-") for name, number in JobState.items()}
ENDS: Final = frozenset({"succeeded", "failed", "denied", "cancelled", "expired"})


async def last_events(job_id: bytes, clients: Collection[PartyClient], silent: Collection[str]) -> dict[str, LastEvent]:
    """How each party says that a job has ended there; a party that does not know the job is left out.

    Args:
        job_id: The job, which all parties but the silent ones have been told to end.
        clients: The parties.
        silent: Those that do not answer, who are not asked again.
    """

    async def one(client: PartyClient) -> LastEvent | None:
        before = client.last
        if client.party not in silent and (before is None or NAMES[before.state] not in ENDS):
            with suppress(ComineError):
                await client.look(job_id, CANCEL_S)
        return _merged(before, client.last)

    events = await asyncio.gather(*map(one, clients))
    return {client.party: event for client, event in zip(clients, events, strict=True) if event is not None}


def _merged(before: JobEvent | None, last: JobEvent | None) -> LastEvent | None:
    """A node keeps no sizes of a job that ended early, so those that it reported while the job ran count."""
    if last is None:
        return None
    seen = [event for event in (before, last) if event is not None]
    sent, received = (max(getattr(event, name) for event in seen) for name in ("bytes_sent", "bytes_received"))
    return LastEvent(NAMES[last.state], sent, received)
