"""The holders' side of products with a dealer that is none of the session's parties, see `outside_dealer`."""

from __future__ import annotations

import numpy as np

from crypto.primitives.columns import Columns
from crypto.primitives.hashing import derive_key, encode_labels
from crypto.primitives.randomness import KEY_BYTES
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.dealer import columns_used, products_of_dealt
from crypto.protocols.products.dealt_products import WORD
from crypto.protocols.products.ot_matrix import Pairs
from crypto.protocols.products.outside_dealer import LABEL_BYTES, Dealings, Wanted
from link.errors import InternalError, MalformedMessage
from link.session import Session


class OutsideProducts:
    """One holder's products under one dealer; sees to it that no mask serves twice."""

    __slots__ = ("_asked", "_dealings")

    def __init__(self, dealings: Dealings) -> None:
        if len(dealings.seed) != KEY_BYTES:
            raise ValueError(f"a dealer's seed has {KEY_BYTES} bytes, not {len(dealings.seed)}")
        self._dealings, self._asked = dealings, set[bytes]()

    async def pair_products(
        self, session: Session, parties: TwoParty, columns: Columns, rows: int, pairs: Pairs
    ) -> AdditiveShare:
        """Shares of how many rows have both columns of a pair set; both holders call this, on a lane of their own.

        Arguments, result and errors are those of `dealer.pair_products`, but for

        Raises:
            InternalError: Products were asked for on this lane before.
        """
        label = derive_key(session.id, "dealt products", encode_labels(session.path), size=LABEL_BYTES)
        if label in self._asked:
            raise InternalError(
                "products were dealt twice on one lane; two columns under one mask would show their difference"
            )
        self._asked.add(label)
        wanted = Wanted(label, rows, columns_used(pairs))

        async def rest(shape: tuple[int, int]) -> Words:
            products = await self._dealings.products(wanted)
            if products.shape != shape or products.dtype != np.dtype(WORD):
                raise MalformedMessage("the dealer's products have another shape than was asked for")
            return products

        masks = wanted.masks(self._dealings.seed)
        return await products_of_dealt(session, parties, masks, rest, columns, rows, pairs)
