"""What products by Paillier encryption send and compute; see `paillier_kept`: here doubled shares are made exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crypto.protocols.paillier.dot import EXACT
from crypto.protocols.paillier.kept import KeptColumns, Names
from crypto.protocols.paillier.rows import WINDOW
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.ot_extension import BATCH, batches
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
    kept: KeptColumns,
    pairs: Pairs,
    names: Names | None,
    field_bits: int = DEFAULT_FIELD_BITS,
) -> None:
    """Enters `hold_kept` and `evaluate_kept`, and `exact` on the lane of that name below theirs.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which they are called.
        holder: Of the key.
        evaluator: The other party.
        kept: Of the calls before this one; it takes note of this one.
        pairs: As given to both.
        names: As given to both.
        field_bits: k of the extension.
    """
    parts = kept.parts(pairs, names)
    if not kept.calls:
        key = PaillierKey(modulus=bytes(kept.key_bits // 8))
        traffic.send(holder, evaluator, lane, PaillierKey, key.ByteSize())
    kept.keep(parts)
    windows = 0
    for arrangement in (part.arrangement for part in parts if part.new):
        chunks = arrangement.chunks()
        for number, chunk in enumerate(chunks):
            message = EncryptedRows(data=bytes(chunk.ciphertexts * arrangement.ciphertext_bytes))
            traffic.send(holder, evaluator, lane, EncryptedRows, message.ByteSize())
            if (number + 1) % WINDOW == 0 and number + 1 + WINDOW < len(chunks):
                traffic.send(evaluator, holder, f"{lane}/taken", RowsTaken, RowsTaken().ByteSize())
                windows = 1
    size = sum(part.replies * part.arrangement.ciphertext_bytes for part in parts)
    traffic.send_array(evaluator, holder, lane, MaskedProducts, size)
    number = transfers_of(pairs)
    for batch in batches(number):
        traffic.send_array(evaluator, holder, f"{lane}/{EXACT}", ExtensionRows, batch // 8 * block_count(field_bits))
    for start in range(0, number, BATCH):
        size = min(BATCH, number - start) * _WORD_BYTES
        traffic.send_array(holder, evaluator, f"{lane}/{EXACT}", EncryptedMessages, size)
    traffic.rounds += 3 + 2 * windows  # the windows' messages count from where the call began


def transfers_of(pairs: Pairs) -> int:
    """Correlated transfers that make the shares of these pairs exact."""
    return 2 * len(pairs)


@dataclass(frozen=True)
class PaillierWork:
    """What the two parties compute.

    Attributes:
        encryptions: By the key's holder: encryptions of zero, the costly part of an encryption.
        decryptions: By the key's holder.
        multiplications: By the evaluator, modulo n², at most: rows that all its columns treat alike take fewer.
        residues: By the evaluator: uniform n-th residues.
        transfers: Correlated, of words of 8 bytes, from the key's holder.
    """

    encryptions: int
    decryptions: int
    multiplications: int
    residues: int
    transfers: int


def exact_products_work(kept: KeptColumns, pairs: Pairs, names: Names | None, density: float) -> PaillierWork:
    """The work of `hold_kept`, `evaluate_kept` and `exact`.

    Args:
        kept: Of the calls before this one; it takes note of this one.
        pairs: As given to both.
        names: As given to both.
        density: Share of the rows where a column of the evaluator is set.
    """
    parts = kept.parts(pairs, names)
    kept.keep(parts)
    selected = round(kept.rows * density) * sum(part.arrangement.sums for part in parts)
    joined = sum(part.joined_bits for part in parts)
    replies = sum(part.replies for part in parts)
    requests = sum(part.requests for part in parts)
    return PaillierWork(requests, replies, selected + joined, replies, transfers_of(pairs))
