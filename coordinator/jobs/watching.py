"""Watches a job that another process drives, up to its end; starts a driver where none lives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final

from coordinator.jobs.background import take_up
from coordinator.jobs.client import PartyClient
from coordinator.jobs.driver import OnMove, ignored
from coordinator.jobs.party_calls import AWAITS, AWAY
from coordinator.jobs.progress import Watcher
from coordinator.jobs.records.store import JobFolder, Record
from link.errors import ComineError, DeadlineExceeded, InternalError
from link.files.printable import one_line
from link.pki.identity import Identity
from link.transports.grpc_errors import UNREACHED
from protos.v1.control_pb2 import AWAITING_APPROVAL

_LOOK_S: Final = 0.1  # between two looks at the job's folder
_RETURN_S: Final = 1.0
_LATE_S: Final = 120.0  # beyond the time by which the job should have left its state
_DRIVERS: Final = 3  # that may die on us


async def wait_for_end(folder: JobFolder, federation: Path, *, on_move: OnMove = ignored) -> Record:
    """Waits until a job is over, by its folder alone.

    Args:
        folder: The job.
        federation: For a driver, where one has to be started.
        on_move: Called with the job as it moves.

    Raises:
        InternalError: Drivers die; the log in the folder says why.
        DeadlineExceeded: The driver does not end the job in time.
    """
    drivers = 0
    while True:
        record = folder.record()
        on_move(record.job)
        if record.job.over:
            return record
        if take_up(folder, federation):
            drivers += 1
            if drivers > _DRIVERS:
                raise InternalError(f"the job's drivers end at once; look at {folder.path / 'driver.log'}")
        elif time.time() > record.job.until + _LATE_S:
            raise DeadlineExceeded(
                f"the process that drives the job does not end it; look at {folder.path / 'driver.log'}, and end it "
                f"with: comine job cancel {folder.id[:12]}"
            )
        await asyncio.sleep(_LOOK_S)


async def show_progress(record: Record, identity: Identity, addresses: Mapping[str, str], watcher: Watcher) -> None:
    """Passes on what the parties report of a job, until cancelled; what hinders it is the driver's to report."""

    async def listen(party: str) -> None:
        client = PartyClient(identity, party, addresses[party])
        try:
            while True:
                try:
                    async with aclosing(client.watch(record.id)) as events:
                        async for event in events:
                            step = AWAITS if event.state == AWAITING_APPROVAL else one_line(event.step)
                            watcher(party, step, event.done, event.total, event.bytes_sent, event.bytes_received)
                except UNREACHED:
                    watcher(party, AWAY, 0, 0, 0, 0)
                except ComineError:
                    pass
                await asyncio.sleep(_RETURN_S)
        finally:
            await client.close()

    await asyncio.gather(*map(listen, record.spec.job.parties))
