"""What products by Paillier encryption send and compute; see `paillier_kept`: here doubled shares are made exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crypto.protocols.paillier.kept import KeptColumns, Names
from crypto.protocols.paillier.rows import WINDOW
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.transfers.costs import correlated_traffic
from link.traffic import Traffic

_WORD_BYTES: Final = 8


def exact_products_traffic(
    traffic: Traffic, holder: str, evaluator: str, *, kept: KeptColumns, pairs: Pairs, names: Names | None
) -> None:
    """Enters `hold_kept`, `evaluate_kept` and `exact`.

    Args:
        traffic: Where it is entered.
        holder: Of the key.
        evaluator: The other party.
        kept: Of the calls before this one; it takes note of this one.
        pairs: As given to both.
        names: As given to both.
    """
    parts = kept.parts(pairs, names)
    if not kept.calls:
        traffic.send(holder, evaluator, kept.key_bits // 8)
    kept.keep(parts)
    windows = 0
    for arrangement in (part.arrangement for part in parts if part.new):
        chunks = arrangement.chunks()
        size = sum(chunk.ciphertexts for chunk in chunks) * arrangement.ciphertext_bytes
        traffic.send(holder, evaluator, size, len(chunks))
        taken = max(0, (len(chunks) - 1) // WINDOW - 1)  # acknowledgements of windows but for the last one
        traffic.send(evaluator, holder, 0, taken)
        windows = windows or bool(taken)
    traffic.send(evaluator, holder, sum(part.replies * part.arrangement.ciphertext_bytes for part in parts))
    correlated_traffic(traffic, holder, evaluator, transfers_of(pairs), _WORD_BYTES)
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
