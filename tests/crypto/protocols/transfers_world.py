"""Batches of an extension that pass from one half to the other without a session."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.transfers.extension_seeds import Expanded, Told


def head_of(corrections: NDArray[np.uint8]) -> bytes:
    """In place of the head of a lane on which they went."""
    return hashlib.sha256(corrections.tobytes()).digest()


def told_of(batch: Expanded) -> Told:
    """What the sender hears of a batch."""
    head = head_of(batch.corrections)
    return Told(batch.corrections, head, batch.check(head))
