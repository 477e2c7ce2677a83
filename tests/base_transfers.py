"""Base transfers of parties that live in one test: the same messages and keys that fit each other, without groups.

Group operations are half of the work of a small job. That real ones serve protocols and jobs is seen by those of
`tests/wire`, in seeded simulations, and where nodes and simulations are processes; what they hide, by their own tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from coordinator.jobs.progress import Watcher, unwatched
from coordinator.jobs.simulate import simulate_job
from crypto.primitives.groups.ristretto255 import POINT_BYTES, Points
from crypto.protocols.transfers import extension_seeds
from crypto.protocols.transfers.base_ot import KEY_BYTES, Keys
from jobs.data import Data
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import ChoicePoints, TransferKey

_patch = pytest.MonkeyPatch()
_users = 0


@contextmanager
def without_groups() -> Iterator[None]:
    """Until the last of those that want it ends, in whatever order."""
    global _users
    if _users == 0:
        _patch.setattr(extension_seeds, "send_keys", send_keys)
        _patch.setattr(extension_seeds, "receive_keys", receive_keys)
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if _users == 0:
            _patch.undo()


async def quickly_simulated(
    spec: JobSpec, data: Mapping[str, Data], *, seed: int | None = None, watcher: Watcher = unwatched
) -> Result:
    """As `simulate_job`, which repeats what it draws from a seed."""
    with without_groups() if seed is None else nullcontext():
        return await simulate_job(spec, data, seed=seed, watcher=watcher)


async def send_keys(session: Session, peer: str, number: int) -> tuple[Keys, Keys]:
    """As in `base_ot`."""
    public = session.randomness("sender's key").bytes(POINT_BYTES)
    await session.send(peer, TransferKey(point=public))
    points = await session.recv_array(peer, ChoicePoints, np.uint8, (2, number, POINT_BYTES))
    return _keys(public, points[0]), _keys(public, points[1])


async def receive_keys(session: Session, peer: str, choices: NDArray[np.uint8]) -> Keys:
    """As in `base_ot`."""
    random = session.randomness("receiver's points").bytes(2 * len(choices) * POINT_BYTES)
    points = np.frombuffer(random, np.uint8).reshape(2, len(choices), POINT_BYTES)
    await session.send_array(peer, ChoicePoints, points)
    public = (await session.recv(peer, TransferKey, lambda _: None)).point
    return _keys(public, points[choices, np.arange(len(choices))])


def _keys(public: bytes, points: Points) -> Keys:
    digests = [hashlib.sha256(public + point.tobytes()).digest()[:KEY_BYTES] for point in points]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, KEY_BYTES)
