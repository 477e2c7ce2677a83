"""Products of two parties' private columns with a dealer of correlated randomness: a matrix of Beaver's triples.

X (a × N) belongs to the first holder, Y (b × N) to the second; the result is X·Yᵀ modulo 2^32.

    offline  The dealer draws A, as large as X, from a stream that it has in common with the first holder, and B, as
             large as Y, from one in common with the second; it draws the first's part of C = A·Bᵀ and sends the rest
             to the second.
    online   The holders send each other D = X − A and E = Y − B; as X·Yᵀ = A·Eᵀ + D·Yᵀ + C, the first adds A·Eᵀ to
             its part of C, the second D·Yᵀ.

The counts, below 2^31, are lifted to 64 bits by the holders alone (`lifting`).

Rounds: 1 a block of rows, beside the lifting's; the dealer's message may come at any time.
Output: additive shares modulo 2^64 at both holders.
Bytes: 4 a row for each column from its holder; 4 a pair of columns from the dealer.

Adversary: semi-honest. The holders see uniform matrices; the dealer sees nothing that depends on data, and no frame
reaches it. Collusion: none is tolerated. The dealer and either holder together read the other's columns.
A dealer that is none of the session's parties: `outside_dealer`.
Leakage: rows and numbers of columns.

Source: Beaver, CRYPTO 1991; Du and Atallah, "Protocols for Secure Remote Database Access", 2000 (a commodity server);
Mohassel and Zhang, "SecureML", IEEE S&P 2017, section IV-A (matrices).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns, bits_of, check_columns
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.ring_matrix import matrix_product, random_matrix, row_blocks
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.dealt_products import WORD, dealt_products
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.randomness import RandomStream
from link.session import Session
from protos.v1.products_pb2 import DealtProducts, MaskedColumns

_PURPOSE: Final = "masks of columns"


async def deal(
    session: Session, secrets: PairwiseSecrets, holders: tuple[str, str], *, rows: int, pairs: Pairs
) -> None:
    """The dealer's part.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        holders: The two computing parties; the dealer is none of them.
        rows: Length of the columns, public.
        pairs: As in `pair_products`.
    """
    if session.me in holders:
        raise ValueError("the dealer is a third party, beside the two that compute")
    context = secrets.context(session, _PURPOSE)
    first, second = (secrets.stream(holder, context) for holder in holders)
    products = await session.compute(dealt_products, first, second, rows, columns_used(pairs))
    await session.send_array(holders[1], DealtProducts, products)  # -> 1


def columns_used(pairs: Pairs) -> tuple[int, int]:
    """How many different columns each holder has in the pairs."""
    first, second = (len(np.unique(side)) for side in pairs.T)
    return first, second


async def pair_products(
    session: Session,
    secrets: PairwiseSecrets,
    parties: TwoParty,
    dealer: str,
    columns: Columns,
    rows: int,
    pairs: Pairs,
) -> AdditiveShare:
    """Shares of how many rows have both columns of a pair set; both holders call this with the same rows and pairs.

    Args:
        session: The lane to use, the dealer's as well.
        secrets: From `pairwise.agree` in this session.
        parties: This party's half of the agreement with the other.
        dealer: A third party of the session, which calls `deal`.
        columns: This party's own.
        rows: Length of the columns, public; below 2^31.
        pairs: Columns of the first holder and of the second, public.

    Returns:
        One number a pair, in their order.

    Raises:
        ValueError: A pair names a column that this party does not have, or the columns are too short.
        MalformedMessage: The peer's or the dealer's messages have another size.
    """
    if dealer in parties.holders:
        raise ValueError("the dealer is a third party, beside the two that compute")

    async def rest(shape: tuple[int, int]) -> Words:
        return await session.recv_array(dealer, DealtProducts, WORD, shape)  # <- 1

    masks = secrets.stream(dealer, secrets.context(session, _PURPOSE))
    return await products_of_dealt(session, parties, masks, rest, columns, rows, pairs)


async def products_of_dealt(
    session: Session,
    parties: TwoParty,
    masks: RandomStream,
    rest: Callable[[tuple[int, int]], Awaitable[Words]],
    columns: Columns,
    rows: int,
    pairs: Pairs,
) -> AdditiveShare:
    """The holders' part, wherever the dealer is; arguments and errors as for `pair_products`.

    Args:
        session: The lane to use.
        parties: This party's half of the agreement with the other.
        masks: The stream that this holder has in common with the dealer, fresh for this call.
        rest: Gives the second holder what the dealer has for it, of this shape.
        columns: This party's own.
        rows: Length of the columns.
        pairs: Columns of the first holder and of the second.
    """
    check_columns(columns, rows, pairs[:, 0 if parties.is_first else 1])
    used, places = zip(*(np.unique(side, return_inverse=True) for side in pairs.T), strict=True)
    mine, theirs = (len(each) for each in (used if parties.is_first else used[::-1]))
    own = columns[used[0 if parties.is_first else 1]]
    total: Words = np.zeros((len(used[0]), len(used[1])), WORD)

    def masked(start: int, stop: int) -> tuple[NDArray[np.uint8], Words, Words]:
        bits = bits_of(own, (start, stop))
        mask = random_matrix(masks, (mine, stop - start), WORD)
        return bits, mask, bits - mask

    for start, stop in row_blocks(rows, mine + theirs):
        bits, mask, difference = await session.compute(masked, start, stop)
        await session.send_array(parties.peer, MaskedColumns, difference)  # -> 1
        came = await session.recv_array(parties.peer, MaskedColumns, WORD, (theirs, stop - start))  # <- 1
        if parties.is_first:
            total += await session.compute(matrix_product, mask, came, WORD)
        else:
            total += await session.compute(matrix_product, came, bits, WORD)
    if parties.is_first:
        total += random_matrix(masks, (mine, theirs), WORD)
    else:
        total += await rest((theirs, mine))
    return await lift_sums(session.lane("lift"), parties, total[places[0], places[1]][:, None])
