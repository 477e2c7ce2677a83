"""Sends closed batches to the next shuffler of their route, as often as it takes, until that one has them on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import grpc

from jobs.audit.service_events import BatchForwarded
from link.errors import ComineError, ConfigurationError
from link.logs.structured import Log
from link.pki.identity import Identity
from link.transports.grpc_channel import dial
from link.transports.grpc_errors import explained
from party.services.shuffler.pool import Disk, Pool, Recorder
from party.services.shuffler.store import ShufflerStore
from protos.v1.shuffle_pb2 import BatchPart, ForwardReceipt
from protos.v1.shuffle_pb2_grpc import ShufflerStub

_FIRST_PAUSE_S: Final = 0.5  # after a failure; doubled after each further one
_LAST_PAUSE_S: Final = 30.0


class Forwarder:
    """Sends the batches of all routes for which this node is not the last shuffler.

    Args:
        identity: This node's.
        addresses: HOST:PORT of each party.
        store: Where batches are kept.
        disk: Through which the store is used.
        audit: The node's audit log.
        log: The node's log.
    """

    def __init__(
        self,
        identity: Identity,
        addresses: Mapping[str, str],
        store: ShufflerStore,
        disk: Disk,
        audit: Recorder,
        log: Log,
    ) -> None:
        self._identity, self._addresses, self._store, self._disk, self._log = identity, addresses, store, disk, log
        self._audit = audit
        self.tasks: set[asyncio.Task[None]] = set()

    def begin(self, pool: Pool, over: Callable[[Pool], None]) -> None:
        """Sends the batches of a route from now on; `over` is called once it is retired and has nothing to send."""
        if pool.hop + 1 < len(pool.route.shufflers):
            task = asyncio.create_task(self._run(pool, pool.route.shufflers[pool.hop + 1], over))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def stop(self) -> None:
        """Sends nothing more; what has no receipt is sent again after the next start."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _run(self, pool: Pool, peer: str, over: Callable[[Pool], None]) -> None:
        async with dial(self._identity, peer, self._addresses[peer]) as channel:
            stub: Any = ShufflerStub(channel)
            while not await pool.is_over():
                await pool.departed.wait()
                pool.departed.clear()
                for batch in await pool.unsent():
                    await self._send(stub, pool, peer, batch)
        over(pool)

    async def _send(self, stub: Any, pool: Pool, peer: str, batch: int) -> None:
        """Sends one batch until it has arrived: the next one must not come before it."""
        pause, route = _FIRST_PAUSE_S, pool.route.name
        while True:
            try:
                await self.forward(stub, pool, peer, batch)
                await self._audit.record(await arrived(pool, self._store, self._disk, batch, peer))
            except (grpc.RpcError, ComineError) as error:
                cause = error if isinstance(error, ComineError) else self._explained(error, peer)
                self._log.warning("batch not forwarded", route=route, batch=batch, peer=peer, error=cause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LAST_PAUSE_S)
            else:
                await self._disk(self._store.sent, pool.stored.row, batch, time.time())
                self._log.info("batch forwarded", route=route, batch=batch, peer=peer)
                return

    async def forward(self, stub: Any, pool: Pool, peer: str, batch: int) -> None:
        """Sends one batch, once.

        Raises:
            ConfigurationError: The peer gave no receipt for it.
        """
        call = stub.Forward(parts(pool, self._store, self._disk, batch))
        answers: list[ForwardReceipt | None] = [receipt async for receipt in call]  # None: bytes that are no receipt
        if [answer and answer.batch for answer in answers] != [batch]:
            raise ConfigurationError(
                f"{peer} gave no receipt for a batch; check that it runs the same version of comine"
            )

    def _explained(self, error: grpc.RpcError, peer: str) -> ComineError:
        return explained(error, peer, self._addresses[peer], "party")


async def arrived(pool: Pool, store: ShufflerStore, disk: Disk, batch: int, to: str) -> BatchForwarded:
    """What the audit log records of a closed batch that is at its next place."""
    head = await disk(store.head, pool.stored.row, batch)
    assert head is not None
    return BatchForwarded(route=pool.route.name, batch=batch, to=to, reports=head.reports)


async def parts(pool: Pool, store: ShufflerStore, disk: Disk, batch: int) -> AsyncIterator[BatchPart]:
    """A closed batch in pieces, as it was when it was closed."""
    head = await disk(store.head, pool.stored.row, batch)
    assert head is not None
    data, number = await disk(store.part, pool.stored.row, batch, 0), 0
    while True:
        number += 1
        following = None if data is None else await disk(store.part, pool.stored.row, batch, number)
        yield BatchPart(head=head if number == 1 else None, reports=data or b"", last=following is None)
        if following is None:
            return
        data = following
