"""Supports by oblivious transfer between two parties."""

from __future__ import annotations

from crypto.primitives.columns import Columns
from crypto.protocols.products.ot_matrix import Pairs, pair_products
from link.session import Session
from mining.joint.vertical.engines.pairwise import PairwiseProducts
from mining.joint.vertical.engines.products import Addends, Naming


class TransferProducts(PairwiseProducts):
    """Vector transfers between two parties (`ot_matrix`), products of shares among more (`shared_products`)."""

    async def pair_addends(
        self, session: Session, pair: tuple[str, str], columns: Columns, rows: int, numbers: Pairs, names: Naming | None
    ) -> Addends:
        (peer,) = set(pair) - {session.me}
        return (await pair_products(session, self._pairs[peer], columns, rows, numbers)).values
