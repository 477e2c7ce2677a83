"""A dealer that is none of the session's parties: it knows nothing of a job but what it is asked for.

It draws a seed for each of two holders, who get them beforehand over channels of their own. Of every product (`dealer`)
the holders derive a *label* from the session and the lane; under it the streams of masks follow from the seeds. The
second holder asks the dealer for what it is to get: label, rows, and how many columns each holder has. That is a
function of the two seeds and the request, so the dealer keeps no account, and may be asked again. The holders' side is
`outside_products`.

The streams depend on the whole request. A holder that asks under one label for another shape gets what is of no use:
masks of other products stay unknown to it.

Rounds: those of `dealer`, and the request.
Adversary, collusion, source: as `dealer`. The channels between dealer and holders keep seeds and products from others.
Leakage: to the dealer the rows and numbers of columns of every product.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Protocol

from crypto.primitives.hashing import derive_key
from crypto.primitives.randomness import KEY_BYTES, Randomness
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.ring_matrix import MAX_ROWS
from crypto.protocols.products.dealt_products import dealt_products
from link.errors import LimitExceeded, MalformedMessage
from link.randomness import RandomStream

LABEL_BYTES: Final = 32
MAX_PRODUCTS: Final = 1 << 28  # of one request: 1 GB


@dataclass(frozen=True)
class Wanted:
    """What the second holder asks the dealer for.

    Attributes:
        label: Names the product; the same at both holders, and used once.
        rows: Length of the columns.
        columns: How many each holder has.
    """

    label: bytes
    rows: int
    columns: tuple[int, int]

    def __post_init__(self) -> None:
        if len(self.label) != LABEL_BYTES or not 0 <= self.rows <= MAX_ROWS or min(self.columns) < 0:
            raise MalformedMessage("a dealer was asked for a product that cannot be; check the versions of all nodes")
        if self.columns[0] * self.columns[1] > MAX_PRODUCTS:
            raise LimitExceeded(f"a dealer was asked for more than {MAX_PRODUCTS} products at once")

    def masks(self, seed: bytes) -> Randomness:
        """The stream that the dealer and the holder of this seed have in common for the product."""
        return Randomness.from_key(derive_key(seed, "dealt", self.label, self.rows, *self.columns))


class Dealer:
    """The dealer's side: two seeds, and what follows from them.

    Attributes:
        seeds: Of the first holder and of the second, in the order of the job; each for its holder's eyes only.
    """

    __slots__ = ("seeds",)

    def __init__(self, random: RandomStream) -> None:
        """Fresh seeds."""
        self.seeds = random.bytes(KEY_BYTES), random.bytes(KEY_BYTES)

    def products(self, wanted: Wanted) -> Words:
        """What the second holder gets; shape (columns of the first, columns of the second)."""
        first, second = (wanted.masks(seed) for seed in self.seeds)
        return dealt_products(first, second, wanted.rows, wanted.columns)

    def here(self) -> tuple[Dealings, Dealings]:
        """What two holders in this very process have of it."""
        first, second = (_Here(self, seed) for seed in self.seeds)
        return first, second

    def __repr__(self) -> str:
        return "<Dealer>"


class Dealings(Protocol):
    """What a holder has of a dealer."""

    @property
    def seed(self) -> bytes:
        """The holder's own."""

    async def products(self, wanted: Wanted) -> Words:
        """The dealer's answer, of the shape asked for; only the second holder asks.

        Raises:
            ComineError: The dealer cannot be reached any more, or its answer has another size.
        """


@dataclass(frozen=True, repr=False)
class _Here:
    dealer: Dealer
    seed: bytes

    async def products(self, wanted: Wanted) -> Words:
        return await asyncio.to_thread(self.dealer.products, wanted)
