"""Supports by packed ciphertexts of Paillier's scheme between two parties."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.columns import Columns
from crypto.primitives.paillier.keys import DEFAULT_BITS, PrivateKey, generate_key
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.workers import PIECE, Workers
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.protocols.paillier.dot import EXACT
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, Names, evaluate_kept, hold_kept
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.ot_matrix import Pairs
from link.executor import available_cores
from link.runtime.process_executor import ProcessExecutor
from link.session import Session
from mining.joint.vertical.engines.engine import Setup
from mining.joint.vertical.engines.pairwise import PairwiseProducts
from mining.joint.vertical.engines.products import Addends, Naming

KEY_BITS: Final = DEFAULT_BITS
MOST_ROWS: Final = 1 << 22  # at once: slots under masks of their own hold counts below 2^23
WORTH_PROCESSES: Final = 4 * PIECE  # ciphertexts below which processes take longer to start than they save


@dataclass(frozen=True)
class Roles:
    """Who does what in a call, and with what.

    Attributes:
        holder: Of the key.
        evaluator: The other of the two.
        kept: Which of the holder's columns the evaluator has under encryption.
        pairs: Of columns of the holder and of the evaluator.
        names: Of the holder's columns.
    """

    holder: str
    evaluator: str
    kept: KeptColumns
    pairs: Pairs
    names: Names | None

    @property
    def ciphertexts(self) -> int:
        """That the evaluator multiplies, each once or more."""
        return sum(part.arrangement.requests for part in self.kept.parts(self.pairs, self.names))


class Encrypted:
    """What pairs of parties have under each other's encryption: public, and the same at both of a pair."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._of: dict[tuple[tuple[str, str], int, int], dict[str, KeptColumns]] = {}

    def roles(self, pair: tuple[str, str], block: tuple[int, int], numbers: Pairs, names: Naming | None) -> Roles:
        """Who holds the key: with whom there is less to do, now and in the calls that may follow; in doubt the first.

        Args:
            pair: Two parties, in the order of the job.
            block: The first row and the one after the last.
            numbers: Their conjunctions, as in `ot_matrix`.
            names: Of the conjunctions; of a call without, nothing is kept.
        """
        first, second = pair
        start, stop = block
        kept = {party: KeptColumns(stop - start, KEY_BITS) for party in pair}
        if names is not None:
            kept = self._of.setdefault((pair, start, stop), kept)
        named = dict.fromkeys(pair) if names is None else {party: names[party] for party in pair}
        ways = (
            Roles(first, second, kept[first], numbers, named[first]),
            Roles(second, first, kept[second], numbers[:, ::-1], named[second]),
        )
        return min(ways, key=lambda way: sum(part.foreseen for part in way.kept.parts(way.pairs, way.names)))


class PaillierProducts(PairwiseProducts):
    """Packed ciphertexts between two parties (`paillier_kept`), products of shares among more (`shared_products`).

    A party's key lives as long as this object, and so do the ciphertexts of its conjunctions at the others: another
    attempt of a job has other keys, and keeps none.

    Attributes:
        key: This party's, with its encryptions of zero; None before it is made, and after `close`.
        stocking: Makes more of these, until columns come.
    """

    def __init__(self, setup: Setup) -> None:
        """Makes no key yet; the session of `setup` is for this party's key."""
        super().__init__(setup.secrets, setup.pairs, setup.task.compute)
        self._session = setup.session
        self.key: tuple[PrivateKey, ZeroPool] | None = None
        self._making_key = asyncio.Lock()
        self._processes = ProcessExecutor() if available_cores() > 1 else None
        self.stocking: asyncio.Task[None] | None = None
        self._encrypted = Encrypted()
        self._rows: dict[KeptColumns, KeptRows] = {}

    async def prepare(self, rows: int) -> None:
        """Makes a key, begins with a stock of encryptions of zero, and agrees upon the seeds of transfers."""
        _, pool = await self._own_key()
        if rows >= WORTH_PROCESSES:
            random = self._session.randomness("stock")
            self.stocking = asyncio.create_task(pool.fill(rows, random, self._workers(rows, self._session)))
        await super().prepare(rows)

    async def addends(
        self, session: Session, columns: Columns, rows: int, itemsets: Sequence[Itemset], names: Naming | None = None
    ) -> Addends:
        await self._end_stocking()
        return await super().addends(session, columns, rows, itemsets, names)

    def close(self) -> None:
        """Forgets the key and ends the processes that have worked under it."""
        if self.stocking is not None:
            self.stocking.cancel()
        self.key = None
        self._rows.clear()
        if self._processes is not None:
            self._processes.close()

    async def pair_addends(
        self, session: Session, pair: tuple[str, str], columns: Columns, rows: int, numbers: Pairs, names: Naming | None
    ) -> Addends:
        total = np.zeros(len(numbers), np.uint64)
        for number, (start, stop) in enumerate(row_blocks(rows)):
            lane, part = session.lane(f"{number}"), columns[:, start // 8 : -(-stop // 8)]
            total += await self._products(lane, part, self._encrypted.roles(pair, (start, stop), numbers, names))
        return total

    async def _products(self, session: Session, columns: Columns, roles: Roles) -> Addends:
        holder, evaluator, kept, call = roles.holder, roles.evaluator, roles.kept, (columns, roles.pairs, roles.names)
        workers = self._workers(roles.ciphertexts, session)
        if session.me == holder:
            key, pool = await self._own_key()
            doubled = await hold_kept(session, evaluator, key, pool, kept, *call, workers=workers)
        else:
            rows = KeptRows(kept) if roles.names is None else self._rows.setdefault(kept, KeptRows(kept))
            doubled = await evaluate_kept(session, holder, rows, *call, workers=workers)
        peer = evaluator if session.me == holder else holder
        return (await doubled.exact(session.lane(EXACT), self._pairs[peer])).values

    async def _own_key(self) -> tuple[PrivateKey, ZeroPool]:
        async with self._making_key:
            if self.key is None:
                random = self._session.randomness("key")
                key = await self._session.compute(generate_key, KEY_BITS, random)
                source = await self._session.compute(OwnerZeros.of, key, self._session.randomness("bases"))
                self.key = key, ZeroPool(source)
            return self.key

    async def _end_stocking(self) -> None:
        """What has been made by now is used; what is missing is made when it is known how much that is."""
        task, self.stocking = self.stocking, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)  # an error comes again where the stock is used

    def _workers(self, ciphertexts: int, session: Session) -> Workers:
        if self._processes is None or ciphertexts < WORTH_PROCESSES:
            return session
        return self._processes


def row_blocks(rows: int) -> list[tuple[int, int]]:
    """Rows that are computed on at once, each block beginning at a whole byte."""
    return [(start, min(start + MOST_ROWS, rows)) for start in range(0, rows, MOST_ROWS)]
