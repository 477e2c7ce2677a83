"""What transfers of an extension send, with the field that all protocols use; see `ot_extension`."""

from __future__ import annotations

from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.ot_extension import BATCH, batches
from link.traffic import Traffic


def rows_bytes(transfers: int) -> int:
    """What the receiver sends for so many transfers of one of two."""
    return sum(batches(transfers)) // 8 * block_count(DEFAULT_FIELD_BITS)


def correlated_traffic(traffic: Traffic, sender: str, receiver: str, number: int, word_bytes: int) -> None:
    """Enters `send_correlated`: 2 rounds, which the caller counts."""
    messages = -(-number // BATCH)
    traffic.send(receiver, sender, rows_bytes(number), messages)
    traffic.send(sender, receiver, number * word_bytes, messages)
