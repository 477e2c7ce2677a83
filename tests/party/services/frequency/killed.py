"""A process that takes reports until it is killed, for `test_durability`.

Client c reports value c, so a tally says who was counted, and how often. A batch is known by its number.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.registry import oracle
from ldp.reports import Reports
from party.services.frequency.storage import folding
from tests.party.services.frequency.storage.storing import opened, pseudonyms, store_in, sums

CLIENTS = 1 << 15
MECHANISM = oracle("grr", CLIENTS, 1.0)
STARTED, ANSWERED = 1, 2
_ENTRY = struct.Struct("<BII")  # kind, batch, bytes of statuses
_IN_FLIGHT = 6


def clients_of(batch: int) -> NDArray[np.int64]:
    """The clients of a batch; some of them come in several batches, or twice in one."""
    rng = np.random.default_rng(batch)
    return rng.integers(0, CLIENTS, int(rng.integers(1, 400)))


def values_of(clients: NDArray[np.int64]) -> Reports:
    return Reports(MECHANISM.fingerprint, (clients.astype(MECHANISM.layout[0].dtype),))


def take(folder: Path, again: list[int], following: int, most: int, seldom: bool) -> None:
    """Takes some batches again and then further ones, and notes in the folder what was begun and what was answered.

    Args:
        folder: Of the store.
        again: Batches.
        following: The first of the further ones.
        most: How many of those.
        seldom: Whether tallies are saved as seldom as usual.
    """
    if not seldom:
        folding.SAVE_BYTES, folding.REST_S = 1 << 12, 0.001
    store = store_in(folder)
    intake = opened(store, mechanism=MECHANISM)
    intake.open.folding.enough_bytes = folding.SAVE_BYTES
    journal = os.open(folder / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    batches = iter([*again, *range(following, following + most)])

    async def sends() -> None:
        for batch in batches:
            clients = clients_of(batch)
            os.write(journal, _ENTRY.pack(STARTED, batch, 0))
            statuses = await intake.submit("fleet", pseudonyms(clients), values_of(clients), 1 << 30)
            os.write(journal, _ENTRY.pack(ANSWERED, batch, len(statuses)) + statuses.tobytes())

    async def run() -> None:
        await asyncio.gather(*(sends() for _ in range(_IN_FLIGHT)))

    asyncio.run(run())
    store.close()


def journal(folder: Path) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """What was begun and answered: kind, batch, statuses."""
    path = folder / "journal"
    data = path.read_bytes() if path.exists() else b""
    start = 0
    while start < len(data):
        kind, batch, size = _ENTRY.unpack_from(data, start)
        start += _ENTRY.size + size
        yield kind, batch, np.frombuffer(data[start - size : start], np.uint8)


def counted(folder: Path) -> Any:
    """How often each client was counted, as a start of the node finds it."""
    store = store_in(folder)
    tally = np.array(sums(opened(store, mechanism=MECHANISM).aggregator()))
    store.close()
    return tally
