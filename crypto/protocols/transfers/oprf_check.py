"""The check of one part of an oblivious pseudorandom function: that the receiver's rows are words of the code.

The receiver has sent U = T ⊕ T' ⊕ C(D), column by column; the sender has Q = T ⊕ s·C(D). h is a linear hash of columns
under the sender's challenge (`polynomial_hash`), drawn after it has U. The receiver answers with h of the 512 columns
of T and of the 128 of D, and the sender checks for every column i

    h(Q_i) = h(T_i) ⊕ s_i·C(h(D))_i .

The last 256 rows of D, and those that fill it up to whole blocks, are random and read by no point. So h(D) is uniform,
and then h(T) is what the sender can compute by itself: the answer reveals nothing.

What is left to a receiver that deviates: say its rows, U ⊕ T ⊕ T', differ from words of the code. If it is not caught
there are t columns such that the rest of its rows are words (of the code without these columns), and it has guessed s
in these t, but for a chance of 2^-116. `docs/protocols/oprf.md` proves it. An honest receiver always passes.

Source: Orrù, Orsini and Scholl, CT-RSA 2017, section 3 (the check); Roy, "SoftSpokenOT", CRYPTO 2022, sections 1 and 4
(what checks by linear hashes prove); the hash of columns as Keller, Orsini and Scholl, CRYPTO 2015, take sums over
GF(2^128).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, transpose, transpose_back
from crypto.primitives.groups.point_hash import Words
from crypto.primitives.linear_code import MESSAGE_BITS, WORD_BITS, encoded, encoding
from crypto.primitives.okvs import Layout
from crypto.primitives.polynomial_hash import HASH_BYTES, MASK_BLOCKS, SEED_BYTES, polynomial_hashes
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.oblivious_prf_pb2 import CheckedColumns, ColumnChallenge

WORDS: Final = WORD_BITS // 64
BLOCKS: Final = WORD_BITS // ROWS

Columns = NDArray[np.uint8]
"""Shape (512, rows / 8): packed bits, the rows' lowest first."""


def rows_of(layout: Layout) -> int:
    """All rows that are sent for a store: its own, filled up to whole blocks, and two blocks that mask the hashes."""
    return (-(-layout.rows // ROWS) + MASK_BLOCKS) * ROWS


@dataclass(frozen=True, repr=False)
class Sent:
    """What the receiver keeps of a part until it is challenged.

    Attributes:
        streams: T by columns.
        messages: D by columns, shape (128, rows / 8).
    """

    streams: Columns
    messages: Columns

    def answer(self, seed: bytes) -> CheckedColumns:
        """The hashes for a challenge."""
        messages, streams = (polynomial_hashes(columns, seed) for columns in (self.messages, self.streams))
        return CheckedColumns(messages=messages.tobytes(), streams=streams.tobytes())


async def answer_check(session: Session, peer: str, sent: Sent) -> None:
    """The receiver's part.

    Raises:
        MalformedMessage: The sender's challenge has another size.
    """
    seed = (await session.recv(peer, ColumnChallenge, _check_seed)).seed  # <- 1
    await session.send(peer, await session.compute(sent.answer, seed))  # -> 2


async def check(session: Session, peer: str, seed: bytes, secret: NDArray[np.uint64], columns: Columns) -> None:
    """The sender's part, after its challenge was sent.

    Args:
        session: The lane to use.
        peer: The receiver.
        seed: Of the challenge, random.
        secret: s, shape (8,).
        columns: Of Q.

    Raises:
        MalformedMessage: The answer has another size.
        ProtocolViolation: The receiver's rows are not those of points. Nothing of this part may be used.
    """
    answer = await session.recv(peer, CheckedColumns, _check_answer)  # <- 2
    if not await session.compute(agrees, answer, seed, secret, columns):
        raise ProtocolViolation(
            f"the rows of {peer} in an oblivious pseudorandom function contradict its points; its node must be checked",
            party=peer,
        )


def agrees(answer: CheckedColumns, seed: bytes, secret: NDArray[np.uint64], columns: Columns) -> bool:
    """Whether what the receiver answers fits the sender's columns, for the challenge of a seed."""
    messages = np.frombuffer(answer.messages, np.uint8).reshape(MESSAGE_BITS, HASH_BYTES)
    words = encoded(transpose(messages), encoding() & secret)
    expected = polynomial_hashes(columns, seed) ^ columns_of(words)
    return hmac.compare_digest(expected.tobytes(), answer.streams)


def columns_of(words: Words) -> Columns:
    """The columns of rows of 512 bits; a multiple of 128 of them, shape (n, 8)."""
    return np.concatenate([transpose_back(words[:, 2 * block : 2 * block + 2]) for block in range(BLOCKS)])


def rows_from(columns: Columns) -> Words:
    """The rows, shape (n, 8)."""
    rows = np.empty((columns.shape[1] * 8, WORDS), np.uint64)
    for block in range(BLOCKS):
        transpose(columns[block * ROWS : (block + 1) * ROWS], rows[:, 2 * block : 2 * block + 2])
    return rows


def _check_seed(message: ColumnChallenge) -> None:
    if len(message.seed) != SEED_BYTES:
        raise ValueError(f"a challenge has {SEED_BYTES} bytes, not {len(message.seed)}")


def _check_answer(message: CheckedColumns) -> None:
    if len(message.messages) != MESSAGE_BITS * HASH_BYTES or len(message.streams) != WORD_BITS * HASH_BYTES:
        raise ValueError("the answer to a challenge has another size")
