"""What transfers of an extension send, with the field that all protocols use; see `ot_extension` and `oprf`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crypto.primitives.groups.point_hash import KEY_BYTES as STORE_SEED_BYTES
from crypto.primitives.groups.ristretto255 import POINT_BYTES
from crypto.primitives.linear_code import MESSAGE_BITS, WORD_BITS
from crypto.primitives.polynomial_hash import HASH_BYTES as COLUMN_HASH_BYTES
from crypto.primitives.polynomial_hash import SEED_BYTES as CHALLENGE_BYTES
from crypto.protocols.transfers.base_ot import KEY_BYTES
from crypto.protocols.transfers.extension_batches import MESSAGES, batch_bytes
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS, block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.oprf import Parts
from crypto.protocols.transfers.oprf_check import rows_of
from crypto.protocols.transfers.ot_extension import BATCH, batches
from crypto.protocols.transfers.seed_trees import HASH_BYTES
from crypto.protocols.transfers.vector_transfers import Batch, corrections_of, transfers_of
from link.traffic import Traffic


def seeds_traffic(
    traffic: Traffic,
    sender: str,
    receiver: str,
    field_bits: int = DEFAULT_FIELD_BITS,
    symbol_bits: int = SYMBOL_BITS,
) -> None:
    """Enters one direction's seeds: 2 rounds, 1 with fields of one bit, which the caller counts."""
    number = block_count(field_bits, symbol_bits)
    traffic.send(receiver, sender, POINT_BYTES)
    traffic.send(sender, receiver, 2 * number * field_bits * POINT_BYTES)
    if field_bits > 1:
        traffic.send(receiver, sender, 2 * number * (field_bits - 1) * KEY_BYTES)
        traffic.send(receiver, sender, (number + 1) * HASH_BYTES)


def rows_bytes(transfers: int, field_bits: int = DEFAULT_FIELD_BITS) -> int:
    """What the receiver sends for so many transfers of one of two."""
    full, rest = divmod(transfers, BATCH)
    last = sum(batch_bytes(field_bits, size) for size in batches(rest))
    return full * batch_bytes(field_bits, BATCH) + last


def rows_traffic(
    traffic: Traffic,
    sender: str,
    receiver: str,
    transfers: int,
    field_bits: int = DEFAULT_FIELD_BITS,
    *,
    times: int = 1,
) -> None:
    """Enters what the receiver sends for so many transfers of one of two, so many times."""
    messages = MESSAGES * -(-transfers // BATCH)
    traffic.send(receiver, sender, rows_bytes(transfers, field_bits), messages, times=times)


def correlated_traffic(
    traffic: Traffic, sender: str, receiver: str, number: int, word_bytes: int, *, times: int = 1
) -> None:
    """Enters `send_correlated`, so many times: 2 rounds, which the caller counts."""
    rows_traffic(traffic, sender, receiver, number, times=times)
    traffic.send(sender, receiver, number * word_bytes, -(-number // BATCH), times=times)


class VectorSizes(NamedTuple):
    """What `send_vectors` sends.

    Attributes:
        batches: Of transfers; as many messages of the sender.
        transfers: Of all batches.
        rows_bytes: Of the receiver's rows.
        corrections: Words that the sender sends.
    """

    batches: int
    transfers: int
    rows_bytes: int
    corrections: int

    @classmethod
    def of(cls, work: Sequence[Batch]) -> VectorSizes:
        """Those of all batches."""
        transfers = [transfers_of(batch) for batch in work]
        return cls(len(work), sum(transfers), sum(map(rows_bytes, transfers)), sum(map(corrections_of, work)))


def vectors_traffic(traffic: Traffic, sender: str, receiver: str, sizes: VectorSizes, word_bytes: int) -> None:
    """Enters `send_vectors`: rounds as `vector_transfers.rounds`, which the caller counts."""
    traffic.send(receiver, sender, sizes.rows_bytes, MESSAGES * sizes.batches)
    traffic.send(sender, receiver, sizes.corrections * word_bytes, sizes.batches)


def oprf_traffic(traffic: Traffic, sender: str, receiver: str, capacity: int) -> None:
    """Enters `oprf.receive_values`, with seeds of its own: rounds as `oprf_rounds`, which the caller counts."""
    parts = Parts.of(capacity)
    rows = rows_of(parts.layout)
    seeds_traffic(traffic, receiver, sender, 1, 1)
    rows_traffic(traffic, receiver, sender, WORD_BITS, 1)
    traffic.send(receiver, sender, parts.number * STORE_SEED_BYTES, parts.number)
    traffic.send(receiver, sender, parts.number * rows * WORD_BITS // 8, parts.number)
    traffic.send(sender, receiver, parts.number * CHALLENGE_BYTES, parts.number)
    traffic.send(receiver, sender, parts.number * (MESSAGE_BITS + WORD_BITS) * COLUMN_HASH_BYTES, parts.number)


def oprf_rounds(capacity: int) -> int:
    """Rounds of `oprf_traffic`: seeds, the transfers, and rows, challenge and answer of each part."""
    return 2 + 3 * Parts.of(capacity).number


def programming_traffic(traffic: Traffic, sender: str, receiver: str, capacity: int, words: int) -> None:
    """Enters the second store of `programmable_oprf`: 1 round, which the caller counts."""
    parts = Parts.of(capacity)
    traffic.send(sender, receiver, parts.number * STORE_SEED_BYTES, parts.number)
    traffic.send(sender, receiver, parts.number * parts.layout.rows * words * 8, parts.number)
