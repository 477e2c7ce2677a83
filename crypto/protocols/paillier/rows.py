"""Encrypted rows and replies between the key's holder and the evaluator: how they are sent, taken in and multiplied.

Both roles of `paillier_dot` and of `paillier_kept` are made of these steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Final

import numpy as np
from gmpy2 import mpz

from crypto.primitives.columns import Columns
from crypto.primitives.paillier.ciphertexts import Ciphertexts, bytes_of, encrypt, values_of, with_plaintext
from crypto.primitives.paillier.keys import PrivateKey
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.public_key import PublicKey
from crypto.primitives.paillier.selection import SelectionWanted, check_and_select
from crypto.primitives.paillier.workers import Workers, in_order
from crypto.primitives.paillier.zeros import UniformZeros
from crypto.protocols.paillier.arrangement import Arrangement, Chunk, in_pieces, joined
from link.errors import MalformedMessage
from link.session import Session
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts, PaillierKey, RowsTaken

WINDOW: Final = 32  # messages of rows that the evaluator acknowledges together
_REPLIES_AT_ONCE: Final = 16  # ciphertexts in a piece of work: a tenth to half a second


# -- the key's holder --------------------------------------------------------------------------------------------------
async def send_rows(
    session: Session,
    evaluator: str,
    arrangement: Arrangement,
    key: PrivateKey,
    pool: ZeroPool,
    columns: Columns,
    workers: Workers,
) -> None:
    """Encrypts the key holder's rows and sends them, message by message, no more than two windows ahead."""

    def encrypted(chunk: Chunk, zeros: list[mpz]) -> bytes:
        return encrypt(key.public, arrangement.plaintexts(chunk, columns), zeros).to_bytes()

    random, taken = session.randomness("encryptions of zero"), session.lane("taken")
    chunks = arrangement.chunks()
    for number, chunk in enumerate(chunks):
        if number >= 2 * WINDOW and number % WINDOW == 0:
            await taken.recv(evaluator, RowsTaken)
        zeros = await pool.draw(chunk.ciphertexts, random, workers)
        rows = await session.compute(encrypted, chunk, zeros)
        await session.send(evaluator, EncryptedRows(data=rows))
        session.progress("encrypting", number + 1, len(chunks))


async def decrypt_replies(session: Session, evaluator: str, key: PrivateKey, replies: int) -> list[mpz]:
    """The plaintexts of so many replies.

    Raises:
        MalformedMessage: They are no ciphertexts under the key, or another number of them.
    """
    shape = (replies, key.public.ciphertext_bytes)
    data = await session.recv_array(evaluator, MaskedProducts, np.uint8, shape)
    try:
        ciphertexts = await session.compute(Ciphertexts.from_bytes, key.public, data.tobytes())
    except ValueError as error:
        raise MalformedMessage(
            f"{evaluator} sent products that are not as they must be: {error}", party=evaluator
        ) from None
    pieces = in_pieces(len(ciphertexts), _REPLIES_AT_ONCE)
    return joined(await session.map(lambda piece: key.decrypt(ciphertexts[piece]), pieces))


# -- the evaluator -----------------------------------------------------------------------------------------------------
async def receive_key(session: Session, holder: str, key_bits: int) -> PublicKey:
    """The holder's key.

    Raises:
        MalformedMessage: It is none of that size.
    """
    message = await session.recv(holder, PaillierKey)
    try:
        return await session.compute(PublicKey.from_bytes, message.modulus, key_bits)
    except ValueError as error:
        raise MalformedMessage(f"{holder} sent a key that cannot be one: {error}", party=holder) from None


async def receive_rows(session: Session, holder: str, arrangement: Arrangement) -> AsyncIterator[bytes]:
    """The holder's encrypted rows, message by message, not yet checked."""
    chunks, taken = arrangement.chunks(), session.lane("taken")
    for number, chunk in enumerate(chunks):
        size = chunk.ciphertexts * arrangement.ciphertext_bytes
        message = await session.recv(holder, EncryptedRows, partial(_check_size, size=size))
        yield message.data
        if (number + 1) % WINDOW == 0 and number + 1 + WINDOW < len(chunks):
            await taken.send(holder, RowsTaken())


async def multiply_rows(
    session: Session,
    holder: str,
    arrangement: Arrangement,
    columns: Columns,
    key: PublicKey,
    rows: AsyncIterable[bytes],
    workers: Workers,
    *,
    checked: bool = False,
) -> list[mpz]:
    """The products of selected ciphertexts: column by column, group by group for each, and for each place by place.

    Args:
        session: For progress and work.
        holder: Who has sent the rows.
        arrangement: How they lie, and which columns select them.
        columns: The evaluator's.
        key: The holder's.
        rows: As `receive_rows` gives them.
        workers: Where ciphertexts are multiplied.
        checked: Whether these rows have been multiplied before, and so been found to be ciphertexts.

    Raises:
        MalformedMessage: The rows are no ciphertexts under the key.
    """
    chunks = arrangement.chunks()

    async def pieces() -> AsyncIterator[SelectionWanted]:
        place = 0
        async for data in rows:
            chunk, place = chunks[place], place + 1
            selection = await session.compute(arrangement.selection, chunk, columns)
            yield SelectionWanted(int(key.n), data, chunk.groups, selection, checked)

    products, done = [mpz(1)] * arrangement.replies, 0
    try:
        async with aclosing(in_order(workers, check_and_select, pieces())) as results:
            async for data in results:
                parts = values_of(key, data)
                products = [a * b % key.n_squared for a, b in zip(products, parts, strict=True)]
                session.progress("multiplying", done := done + 1, len(chunks))
    except ValueError as error:
        raise MalformedMessage(f"{holder} sent rows that are not as they must be: {error}", party=holder) from None
    shape = (arrangement.groups, arrangement.layout.rows, len(arrangement.used[1]))
    places = np.arange(arrangement.replies).reshape(shape).transpose(2, 0, 1).reshape(-1)
    return [products[place] for place in places]


async def uniform_zeros(session: Session, key: PublicKey, count: int) -> list[mpz]:
    """With which so many replies are made fresh; made while rows come in."""
    source = UniformZeros(key)
    pieces = [
        (piece.stop - piece.start, session.randomness("uniform residues"))
        for piece in in_pieces(count, _REPLIES_AT_ONCE)
    ]
    return joined(await session.map(lambda piece: source.make(*piece), pieces))


async def send_replies(
    session: Session, holder: str, key: PublicKey, products: list[mpz], zeros: list[mpz], masks: list[mpz]
) -> None:
    """Sends products, each fresh and under its mask."""

    def masked(piece: slice) -> list[mpz]:
        fresh = (with_plaintext(key, zero, mask) for zero, mask in zip(zeros[piece], masks[piece], strict=True))
        return [a * b % key.n_squared for a, b in zip(products[piece], fresh, strict=True)]

    replies = joined(await session.map(masked, in_pieces(len(products), _REPLIES_AT_ONCE)))
    data = np.frombuffer(bytes_of(key, replies), np.uint8)
    await session.send_array(holder, MaskedProducts, data)


def _check_size(message: EncryptedRows, size: int) -> None:
    if len(message.data) != size:
        raise ValueError(f"{size} bytes of ciphertexts were expected, not {len(message.data)}")
