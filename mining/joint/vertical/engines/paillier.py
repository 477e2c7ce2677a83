"""Supports by Paillier encryption between two parties: a sixth of the traffic of transfers, thirty times the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.columns import Columns
from crypto.primitives.paillier.keys import DEFAULT_BITS, PrivateKey, generate_key
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.workers import PIECE, Workers
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.protocols.ot_matrix import Pairs
from crypto.protocols.paillier_arrangement import Arrangement
from crypto.protocols.paillier_dot import EXACT, evaluate_doubled, hold_doubled
from crypto.protocols.pairwise import PairwiseSecrets
from crypto.protocols.product_chains import Itemset
from crypto.protocols.two_party import TwoParty
from link.executor import available_cores
from link.process_executor import ProcessExecutor
from link.session import Session
from link.tasks import together
from mining.joint.vertical.engines.interface import Addends, by_pair, numbers_of
from mining.joint.vertical.engines.oblivious_transfer import add_several

KEY_BITS: Final = DEFAULT_BITS
MOST_ROWS: Final = 1 << 22  # at once: slots under masks of their own hold counts below 2^23
_WORTH_PROCESSES: Final = 4 * PIECE  # ciphertexts below which processes take longer to start than they save


class PaillierEngine:
    """Packed ciphertexts between two parties (`paillier_dot`), products of shares among more (`shared_products`).

    Private against all other parties together; needs nobody's trust. A party's key lives as long as its engine.
    """

    name = "paillier"

    def __init__(
        self,
        session: Session,
        secrets: PairwiseSecrets,
        pairs: Mapping[str, TwoParty],
        compute: tuple[str, str] | None = None,
    ) -> None:
        """Makes no key yet.

        Args:
            session: A lane of its own, for this party's key.
            secrets: From `pairwise.agree` in this session.
            pairs: By peer this party's half of an agreement with it, whose holders are in the order of the job.
            compute: Who gets the shares of supports over three parties and more; the first two of the job by default.
        """
        self._session, self._secrets, self._pairs, self._compute = session, secrets, pairs, compute
        self._key: tuple[PrivateKey, ZeroPool] | None = None
        self._making_key = asyncio.Lock()
        self._processes = ProcessExecutor() if available_cores() > 1 else None
        self._stocking: asyncio.Task[None] | None = None

    async def prepare(self, rows: int) -> None:
        """Makes a key, begins with a stock of encryptions of zero, and agrees upon the seeds of transfers."""
        _, pool = await self._own_key()
        if rows >= _WORTH_PROCESSES:
            random = self._session.randomness("stock")
            self._stocking = asyncio.create_task(pool.fill(rows, random, self._workers(rows, self._session)))
        await together(pair.prepare() for pair in self._pairs.values())

    async def addends(self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset]) -> Addends:
        """See `Engine`."""
        await self._end_stocking()
        total = np.zeros(len(itemsets), np.uint64)
        work = [
            self._of_pair(session.lane(f"{pair[0]} and {pair[1]}"), columns, rows, itemsets, pair, chosen)
            for pair, chosen in by_pair(itemsets, session.parties).items()
            if session.me in pair
        ]
        for chosen, words in await together(work):
            total[chosen] = words
        await add_several(total, session, self._secrets, self._pairs, self._compute, columns, rows, itemsets)
        return total

    def close(self) -> None:
        """Forgets the key and ends the processes that have worked under it."""
        if self._stocking is not None:
            self._stocking.cancel()
        self._key = None
        if self._processes is not None:
            self._processes.close()

    async def _of_pair(
        self,
        session: Session,
        columns: Columns,
        rows: int,
        itemsets: Sequence[Itemset],
        pair: tuple[str, str],
        chosen: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], Addends]:
        numbers = numbers_of([itemsets[place] for place in chosen], pair)
        total = np.zeros(len(chosen), np.uint64)
        for number, (start, stop) in enumerate(row_blocks(rows)):
            lane, part = session.lane(f"{number}"), columns[:, start // 8 : -(-stop // 8)]
            total += await self._products(lane, part, stop - start, pair, numbers)
        return chosen, total

    async def _products(
        self, session: Session, columns: Columns, rows: int, pair: tuple[str, str], numbers: Pairs
    ) -> Addends:
        holder, evaluator = roles(rows, pair, numbers)
        if holder != pair[0]:
            numbers = numbers[:, ::-1]
        workers = self._workers(Arrangement.of(rows, numbers, "doubled", KEY_BITS).requests, session)
        if session.me == holder:
            key, pool = await self._own_key()
            doubled = await hold_doubled(session, evaluator, key, pool, columns, rows, numbers, workers=workers)
        else:
            arguments = (holder, columns, rows, numbers)
            doubled = await evaluate_doubled(session, *arguments, key_bits=KEY_BITS, workers=workers)
        peer = evaluator if session.me == holder else holder
        return (await doubled.exact(session.lane(EXACT), self._pairs[peer])).values

    async def _own_key(self) -> tuple[PrivateKey, ZeroPool]:
        async with self._making_key:
            if self._key is None:
                random = self._session.randomness("key")
                key = await self._session.compute(generate_key, KEY_BITS, random)
                source = await self._session.compute(OwnerZeros.of, key, self._session.randomness("bases"))
                self._key = key, ZeroPool(source)
            return self._key

    async def _end_stocking(self) -> None:
        """What has been made by now is used; what is missing is made when it is known how much that is."""
        task, self._stocking = self._stocking, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)  # an error comes again where the stock is used

    def _workers(self, ciphertexts: int, session: Session) -> Workers:
        if self._processes is None or ciphertexts < _WORTH_PROCESSES:
            return session
        return self._processes


def row_blocks(rows: int) -> list[tuple[int, int]]:
    """Rows that are computed on at once, each block beginning at a whole byte."""
    return [(start, min(start + MOST_ROWS, rows)) for start in range(0, rows, MOST_ROWS)]


def roles(rows: int, pair: tuple[str, str], numbers: Pairs) -> tuple[str, str]:
    """Who holds the key and who evaluates: what takes less work; the first holds it where both take as much.

    Args:
        rows: Of the columns.
        pair: Two parties.
        numbers: Their conjunctions, as in `ot_matrix`.
    """
    first, second = pair
    ways = [Arrangement.of(rows, way, "doubled", KEY_BITS) for way in (numbers, numbers[:, ::-1])]
    kept, turned = (way.work for way in ways)
    return (first, second) if kept <= turned else (second, first)
