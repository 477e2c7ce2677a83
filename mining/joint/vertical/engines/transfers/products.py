"""Supports by oblivious transfer between two parties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns
from crypto.primitives.sharing import AdditiveShare
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.ot_matrix import pair_products
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from link.tasks import together
from mining.joint.vertical.engines.pairwise import add_several
from mining.joint.vertical.engines.products import Addends, Naming, by_pair, numbers_of


class TransferProducts:
    """Vector transfers between two parties (`ot_matrix`), products of shares among more (`shared_products`).

    Private against all other parties together; needs nobody's trust.
    """

    def __init__(
        self, secrets: PairwiseSecrets, pairs: Mapping[str, TwoParty], compute: tuple[str, str] | None = None
    ) -> None:
        """Agrees upon nothing yet.

        Args:
            secrets: From `pairwise.agree` in this session.
            pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
            compute: Who gets the shares of supports over three parties and more; the first two of the job by default.
        """
        self._secrets, self._pairs, self._compute = secrets, pairs, compute

    async def prepare(self, rows: int) -> None:  # noqa: ARG002 - agreements do not depend on it
        """Agrees upon the seeds of all transfers."""
        await together(pair.prepare() for pair in self._pairs.values())

    async def addends(
        self,
        session: Session,
        columns: Columns,
        rows: int,
        itemsets: Sequence[Itemset],
        names: Naming | None = None,  # noqa: ARG002 - nothing is kept from call to call
    ) -> Addends:
        """See `Products`."""
        total = np.zeros(len(itemsets), np.uint64)
        work = [
            self._of_pair(session, columns, rows, itemsets, pair, chosen)
            for pair, chosen in by_pair(itemsets, session.parties).items()
            if session.me in pair
        ]
        for chosen, share in await together(work):
            total[chosen] = share.values
        await add_several(total, session, self._secrets, self._pairs, self._compute, columns, rows, itemsets)
        return total

    def close(self) -> None:
        """Nothing runs in the background."""

    async def _of_pair(
        self,
        session: Session,
        columns: Columns,
        rows: int,
        itemsets: Sequence[Itemset],
        pair: tuple[str, str],
        chosen: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], AdditiveShare]:
        first, second = pair
        numbers = numbers_of([itemsets[place] for place in chosen], pair)
        parties = self._pairs[second if session.me == first else first]
        share = await pair_products(session.lane(f"{first} and {second}"), parties, columns, rows, numbers)
        return chosen, share
