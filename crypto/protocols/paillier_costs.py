"""What products by Paillier encryption send and compute; see `paillier_dot`: here doubled shares are made exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crypto.protocols.extension_codes import block_count
from crypto.protocols.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.ot_extension import BATCH, batches
from crypto.protocols.ot_matrix import Pairs
from crypto.protocols.paillier_arrangement import Arrangement
from crypto.protocols.paillier_dot import EXACT, WINDOW
from link.traffic import Traffic
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts, PaillierKey, RowsTaken

_WORD_BYTES: Final = 8


def exact_products_traffic(
    traffic: Traffic,
    lane: str,
    holder: str,
    evaluator: str,
    *,
    rows: int,
    pairs: Pairs,
    key_bits: int,
    field_bits: int = DEFAULT_FIELD_BITS,
) -> None:
    """Enters `hold_doubled` and `evaluate_doubled`, and `exact` on the lane of that name below theirs.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which they are called.
        holder: Of the key.
        evaluator: The other party.
        rows: Length of the columns.
        pairs: As given to both.
        key_bits: Size of the key.
        field_bits: k of the extension.
    """
    arrangement = Arrangement.of(rows, pairs, "doubled", key_bits)
    key = PaillierKey(modulus=bytes(key_bits // 8))
    traffic.send(holder, evaluator, lane, PaillierKey, key.ByteSize())
    chunks = arrangement.chunks()
    for number, chunk in enumerate(chunks):
        message = EncryptedRows(data=bytes(chunk.ciphertexts * arrangement.ciphertext_bytes))
        traffic.send(holder, evaluator, lane, EncryptedRows, message.ByteSize())
        if (number + 1) % WINDOW == 0 and number + 1 + WINDOW < len(chunks):
            traffic.send(evaluator, holder, f"{lane}/taken", RowsTaken, RowsTaken().ByteSize())
    size = arrangement.replies * arrangement.ciphertext_bytes
    traffic.send_array(evaluator, holder, lane, MaskedProducts, size)
    number = transfers_of(pairs)
    for batch in batches(number):
        traffic.send_array(evaluator, holder, f"{lane}/{EXACT}", ExtensionRows, batch // 8 * block_count(field_bits))
    for start in range(0, number, BATCH):
        size = min(BATCH, number - start) * _WORD_BYTES
        traffic.send_array(holder, evaluator, f"{lane}/{EXACT}", EncryptedMessages, size)
    traffic.rounds += 5 if len(chunks) > 2 * WINDOW else 3  # the windows' messages count from where the call began


def transfers_of(pairs: Pairs) -> int:
    """Correlated transfers that make the shares of these pairs exact."""
    return 2 * len(pairs)


@dataclass(frozen=True)
class PaillierWork:
    """What the two parties compute.

    Attributes:
        encryptions: By the key's holder: encryptions of zero, the costly part of an encryption.
        decryptions: By the key's holder.
        multiplications: By the evaluator, modulo n², at most.
        residues: By the evaluator: uniform n-th residues.
        transfers: Correlated, of words of 8 bytes, from the key's holder.
    """

    encryptions: int
    decryptions: int
    multiplications: int
    residues: int
    transfers: int


def exact_products_work(rows: int, pairs: Pairs, key_bits: int, density: float) -> PaillierWork:
    """The work of `hold_doubled`, `evaluate_doubled` and `exact`.

    Args:
        rows: Length of the columns.
        pairs: As given to both.
        key_bits: Size of the key.
        density: Share of the rows where a column of the evaluator is set.
    """
    arrangement = Arrangement.of(rows, pairs, "doubled", key_bits)
    selected, replies = round(rows * density) * arrangement.sums, arrangement.replies
    return PaillierWork(arrangement.requests, replies, selected, replies, transfers_of(pairs))
