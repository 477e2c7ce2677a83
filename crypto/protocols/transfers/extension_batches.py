"""A batch of an oblivious-transfer extension on its way: its corrections, and after them its check.

The challenge of the check is drawn from the head of the lane's chain after the corrections, which the link has at both
ends (`extension_check`). So corrections and check are messages of their own, and nothing is sent between them.

Rounds: 1. Bytes: `batch_bytes`, in two messages.

Source: as of `extension_check`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.transfers.extension_check import check_bytes, corrections_bytes
from crypto.protocols.transfers.extension_seeds import Expanded, Told
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import ExtensionCheck, ExtensionRows

MESSAGES: Final = 2
_APART: Final = 25  # version of the wire; before, both were one message, and the challenge drawn from the corrections


def batch_bytes(field_bits: int, number: int, symbol_bits: int = 1) -> int:
    """Bytes that a receiver sends for so many transfers of one of 2^s in one batch."""
    return corrections_bytes(field_bits, number, symbol_bits) + check_bytes(field_bits, symbol_bits)


async def tell_batch(session: Session, peer: str, batch: Expanded) -> None:
    """The receiver's part; on this lane it sends nothing else meanwhile."""
    if session.wire < _APART:
        await session.send_array(peer, ExtensionRows, await session.compute(_together, batch))  # -> 1
        return
    await session.send_array(peer, ExtensionRows, batch.corrections)  # -> 1
    await session.send_array(peer, ExtensionCheck, await session.compute(batch.check, session.head_sent(peer)))  # -> 1


async def hear_batch(session: Session, peer: str, field_bits: int, number: int, symbol_bits: int = 1) -> Told:
    """The sender's part, for `SenderSeeds.expand`.

    Args:
        session: The receiver's lane.
        peer: The receiver.
        field_bits: k.
        number: n, a multiple of 128.
        symbol_bits: s of the receiver's choices.

    Raises:
        MalformedMessage: The receiver's messages have another size.
    """
    size, following = corrections_bytes(field_bits, number, symbol_bits), check_bytes(field_bits, symbol_bits)
    if session.wire < _APART:
        both = await session.recv_array(peer, ExtensionRows, np.uint8, (size + following,))  # <- 1
        return Told(both[:size], both[:size].tobytes(), both[size:])
    corrections = await session.recv_array(peer, ExtensionRows, np.uint8, (size,))  # <- 1
    head = session.head_read(peer)
    return Told(corrections, head, await session.recv_array(peer, ExtensionCheck, np.uint8, (following,)))  # <- 1


def _together(batch: Expanded) -> NDArray[np.uint8]:
    return np.concatenate([batch.corrections, batch.check(batch.corrections.tobytes())])
