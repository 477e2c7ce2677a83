"""What transfers of an extension send, with the field that all protocols use; see `ot_extension` and `oprf`."""

from __future__ import annotations

from crypto.primitives.point_hash import KEY_BYTES as STORE_SEED_BYTES
from crypto.primitives.ristretto255 import POINT_BYTES
from crypto.protocols.transfers.base_ot import KEY_BYTES
from crypto.protocols.transfers.extension_codes import block_count, seed_blocks
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.oprf import COLUMNS, Parts
from crypto.protocols.transfers.ot_extension import BATCH, batches
from link.traffic import Traffic


def seeds_traffic(traffic: Traffic, sender: str, receiver: str) -> None:
    """Enters one direction's seeds: 2 rounds, which the caller counts."""
    number, bits = seed_blocks(DEFAULT_FIELD_BITS), DEFAULT_FIELD_BITS
    traffic.send(receiver, sender, POINT_BYTES)
    traffic.send(sender, receiver, 2 * number * bits * POINT_BYTES)
    traffic.send(receiver, sender, 2 * number * (bits - 1) * KEY_BYTES)


def rows_bytes(transfers: int) -> int:
    """What the receiver sends for so many transfers of one of two."""
    return sum(batches(transfers)) // 8 * block_count(DEFAULT_FIELD_BITS)


def correlated_traffic(traffic: Traffic, sender: str, receiver: str, number: int, word_bytes: int) -> None:
    """Enters `send_correlated`: 2 rounds, which the caller counts."""
    messages = -(-number // BATCH)
    traffic.send(receiver, sender, rows_bytes(number), messages)
    traffic.send(sender, receiver, number * word_bytes, messages)


def oprf_traffic(traffic: Traffic, sender: str, receiver: str, capacity: int) -> None:
    """Enters `oprf.receive_values`, with seeds of its own: 3 rounds, which the caller counts."""
    parts = Parts.of(capacity)
    seeds_traffic(traffic, receiver, sender)
    traffic.send(sender, receiver, rows_bytes(COLUMNS))
    traffic.send(receiver, sender, parts.number * STORE_SEED_BYTES, parts.number)
    traffic.send(receiver, sender, parts.number * parts.layout.rows * COLUMNS // 8, parts.number)


def programming_traffic(traffic: Traffic, sender: str, receiver: str, capacity: int, words: int) -> None:
    """Enters the second store of `programmable_oprf`: 1 round, which the caller counts."""
    parts = Parts.of(capacity)
    traffic.send(sender, receiver, parts.number * STORE_SEED_BYTES, parts.number)
    traffic.send(sender, receiver, parts.number * parts.layout.rows * words * 8, parts.number)
