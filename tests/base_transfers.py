"""Base transfers of tests: the same messages and keys that fit each other, without groups.

Group operations are half of the work of a small job, in the process of the tests and at the nodes that it forks. That
real ones serve protocols and jobs is seen by tests of the wire and of a whole life cycle (`real_groups` of
`tests/conftest.py`), in tutorials, and where nodes and simulations begin as users begin them; what they hide, by their
own tests.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.primitives.groups.ristretto255 import POINT_BYTES, Points
from crypto.protocols.transfers import base_ot, extension_seeds
from crypto.protocols.transfers.base_ot import KEY_BYTES, Keys
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import ChoicePoints, TransferKey


def without_groups(patch: pytest.MonkeyPatch) -> None:
    """From now on, in this process."""
    patch.setattr(extension_seeds, "send_keys", send_keys)
    patch.setattr(extension_seeds, "receive_keys", receive_keys)


def with_groups(patch: pytest.MonkeyPatch) -> None:
    """From now on, in this process: real ones."""
    patch.setattr(extension_seeds, "send_keys", base_ot.send_keys)
    patch.setattr(extension_seeds, "receive_keys", base_ot.receive_keys)


def has_groups() -> bool:
    """Whether they are real ones in this process."""
    return extension_seeds.send_keys is base_ot.send_keys


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
