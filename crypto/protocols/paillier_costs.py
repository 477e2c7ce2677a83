"""What products by Paillier encryption send and compute; see `paillier_dot`, whose results stay shares here."""

from __future__ import annotations

from dataclasses import dataclass

from crypto.protocols.ot_matrix import Pairs
from crypto.protocols.paillier_arrangement import Arrangement
from crypto.protocols.paillier_dot import WINDOW
from link.traffic import Traffic
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts, PaillierKey, RowsTaken


def shared_products_traffic(
    traffic: Traffic, lane: str, holder: str, evaluator: str, *, rows: int, pairs: Pairs, key_bits: int
) -> None:
    """Enters `hold_shared` and `evaluate_shared`.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which they are called.
        holder: Of the key.
        evaluator: The other party.
        rows: Length of the columns.
        pairs: As given to both.
        key_bits: Size of the key.
    """
    arrangement = Arrangement.of(rows, pairs, "shared", key_bits)
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
    traffic.rounds += 4 if len(chunks) > 2 * WINDOW else 2  # the windows' messages count from where the call began


@dataclass(frozen=True)
class PaillierWork:
    """What the two parties compute.

    Attributes:
        encryptions: By the key's holder: encryptions of zero, the costly part of an encryption.
        decryptions: By the key's holder.
        multiplications: By the evaluator, modulo n², at most.
        residues: By the evaluator: uniform n-th residues.
    """

    encryptions: int
    decryptions: int
    multiplications: int
    residues: int


def shared_products_work(rows: int, pairs: Pairs, key_bits: int, density: float) -> PaillierWork:
    """The work of `hold_shared` and `evaluate_shared`.

    Args:
        rows: Length of the columns.
        pairs: As given to both.
        key_bits: Size of the key.
        density: Share of the rows where a column of the evaluator is set.
    """
    arrangement = Arrangement.of(rows, pairs, "shared", key_bits)
    selected = round(rows * density) * len(arrangement.used[1]) * arrangement.groups
    return PaillierWork(arrangement.requests, arrangement.replies, selected, arrangement.replies)
