"""Frequent itemsets over columns of several parties, of whom some may deviate: one of three that compute, and others.

Steps:
    rows     an intersection, of which all compare what the merger opens. Names of columns and of items are compared
             alike
    columns  every party names its frequent items, and deals their columns over the common rows to the three, once
    level k  candidates are joined from the public frequent itemsets of level k − 1. The three multiply the products
             that they have of the candidates' beginnings by the columns of their last items, count, and compare with
             c. Items are counted so, too: no party counts for others. Then it is opened which are frequent, and their
             supports

Rounds:     those of the alignment; 4 for names and columns; those of `verified_counts` for each batch of candidates.
Output:     as of `mine`; the very counts that were compared are opened.
Adversary:  malicious with abort, as of `verified_counts`. What a party may still do is to choose its ids, and its
            columns before any count is known.
Leakage:    `disclosure.openings` lists all that is opened, `disclosure.learned` what follows from it.
Source:     candidates as in `mine`; alignment and counts as in their modules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.hashing import encode_labels
from crypto.primitives.scratch_file import ScratchLimits
from crypto.primitives.shares.replicated_bits import ReplicatedBits
from crypto.primitives.shares.xor import words_of
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.replicated.broadcasts import compare_heard
from crypto.protocols.replicated.count_circuits import count_width
from crypto.protocols.replicated.crosschecks import contradiction, opened
from crypto.protocols.replicated.verified_counts import at_once, count, deal_columns
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together
from mining.candidates import join, most_candidates
from mining.data.table_rows import TableRows
from mining.itemsets import Itemsets
from mining.joint.align import Means
from mining.joint.parameters import JointItemsets
from mining.joint.tally import Counts, Mask
from mining.joint.vertical.aligned import Aligned, align
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.names import Dictionary, dictionary_of, open_names
from mining.joint.vertical.parameters import VerticalMining
from mining.joint.vertical.refusals import no_common_row, too_many
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.thresholds import agreed_count

BATCHES_AT_ONCE: Final = 2

Operands = tuple[ReplicatedBits, ReplicatedBits | None]


async def mine(
    session: Session, table: TableRows, task: VerticalMining, least_count: int = 1, limits: ScratchLimits = IN_MEMORY
) -> JointItemsets:
    """Runs this party's part; arguments and errors as of `mine.mine`."""
    secrets = await agree(session.lane("keys"))
    aligned = await align(session.lane("rows"), Means(secrets, pairs_of(session), limits), table, task)
    return await mine_aligned(session, secrets, aligned, task, least_count)


async def mine_aligned(
    session: Session, secrets: PairwiseSecrets, aligned: Aligned, task: VerticalMining, least_count: int = 1
) -> JointItemsets:
    """As `mine`, once rows are in the common order."""
    n_rows = aligned.n_positions
    if n_rows == 0:
        raise no_common_row()
    min_count = agreed_count(task.min_support, n_rows, floor=least_count, me=session.me, rows="the common rows")
    session.progress("itemsets of 1", 0, 1)
    dictionary, columns = await _dealt(session, aligned, task, min_count)
    run = _Run(session, secrets, task, n_rows, min_count)
    levels = [await run.items(dictionary, columns)] if dictionary.items else []
    while levels and task.allows(len(levels) + 1) and len(levels[-1].sets):
        levels.append(await run.longer(levels, columns))
    found = [
        (level.sets, np.zeros(len(level.sets), np.int64) if level.supports is None else level.supports)
        for level in levels
        if len(level.sets)
    ]
    itemsets = Itemsets(dictionary.items, found, n_rows, counted=task.disclose != "frequent")
    strategy = f"level-wise, {chosen_engine(task).name}"
    return JointItemsets(n_rows, itemsets if session.me in task.learners else None, strategy)


async def _dealt(
    session: Session, aligned: Aligned, task: VerticalMining, min_count: int
) -> tuple[Dictionary, ReplicatedBits | None]:
    """The public dictionary of all parties' frequent items and, at one of the three, their columns in its order."""
    lane, parties, columns = session.lane("items"), session.parties, aligned.columns
    numbers = np.flatnonzero(columns.counts() >= min_count)

    def check(number: int) -> None:
        if number > task.max_candidates:
            raise too_many(1, task.max_candidates)

    names = await open_names(lane, "items", [columns.items[number] for number in numbers], check)
    await compare_heard(
        lane.lane("compare"), {party: encode_labels(*of) for party, of in names.items()}, "the names of its items"
    )
    check(sum(map(len, names.values())))
    _check_different(names)
    dictionary = dictionary_of(parties, session.me, names)
    if not dictionary.items:
        return dictionary, None
    bitmaps = await session.compute(lambda: columns.select(numbers).bitmaps().view(np.uint8))
    sizes = {party: len(of) for party, of in names.items()}
    dealt = await deal_columns(session.lane("dealing"), bitmaps, sizes, aligned.n_positions, task.three)
    if dealt is None:
        return dictionary, None
    order = np.argsort(np.concatenate([dictionary.places[party] for party in dealt]))
    return dictionary, ReplicatedBits.stacked(list(dealt.values())).bits(order)


def _check_different(names: dict[str, list[str]]) -> None:
    """Refuses an item that two parties name: columns have different names, so one of them does not have it."""
    owner: dict[str, str] = {}
    for party, of in names.items():
        for item in of:
            if item in owner:
                raise contradiction(owner[item], party, "whose an item is that both name")
            owner[item] = party


@dataclass(frozen=True, slots=True)
class _Level:
    """Frequent itemsets of one length.

    Attributes:
        sets: Shape (m, k), positions in the public dictionary.
        supports: Where this party learns them.
        products: At one of the three, a plane for each set.
    """

    sets: Sets
    supports: Counts | None
    products: ReplicatedBits | None


@dataclass(frozen=True, slots=True)
class _Run:
    session: Session
    secrets: PairwiseSecrets
    task: VerticalMining
    n_rows: int
    min_count: int

    async def items(self, dictionary: Dictionary, columns: ReplicatedBits | None) -> _Level:
        """Level 1: all items that were named.

        Raises:
            ProtocolViolation: One is not frequent.
        """
        sets = np.arange(len(dictionary.items), dtype=np.int32)[:, None]

        def operands(part: slice) -> Operands | None:
            return None if columns is None else (columns.bits(part), None)

        mask, level = await self._decided(self.session.lane("level-1"), sets, operands)
        if not mask.all():
            owner = self.session.parties[dictionary.holder[np.argmin(mask)]]
            raise ProtocolViolation(
                f"{owner} has named an item that is not frequent among the common rows; its node must be checked",
                party=owner,
            )
        self.session.progress("itemsets of 1", 1, 1)
        return level

    async def longer(self, found: Sequence[_Level], columns: ReplicatedBits | None) -> _Level:
        """The frequent itemsets of the next length."""
        session, before, length = self.session, found[-1], len(found) + 1
        limit = most_candidates([level.sets for level in found[1:]], length, self.task.max_candidates)
        session.progress(f"itemsets of {length}", 0, 1)  # not how many: the coordinator need not learn the result
        try:
            candidates = await session.compute(join, before.sets, limit)
        except EnumerationLimit:
            raise too_many(length, limit) from None

        def operands(part: slice) -> Operands | None:
            if columns is None or before.products is None:
                return None
            last = candidates.sets[part, -1].astype(np.int64)
            return before.products.bits(candidates.left[part]), columns.bits(last)

        _, level = await self._decided(session.lane(f"level-{length}"), candidates.sets, operands)
        session.progress(f"itemsets of {length}", 1, 1)
        return level

    async def _decided(
        self, lane: Session, sets: Sets, operands: Callable[[slice], Operands | None]
    ) -> tuple[Mask, _Level]:
        """Which candidates are frequent, and what is kept and opened of these."""
        slots = asyncio.Semaphore(BATCHES_AT_ONCE)

        async def decide(place: int, part: slice) -> tuple[Mask, Counts | None, ReplicatedBits | None]:
            async with slots:
                return await self._batch(lane.lane(str(place)), part.stop - part.start, operands(part))

        parts = await together(decide(*each) for each in enumerate(batches(len(sets), self.n_rows)))
        mask = np.concatenate([np.zeros(0, np.bool_), *(frequent for frequent, _, _ in parts)])
        products = [each for _, _, each in parts if each is not None]
        supports = [each for _, each, _ in parts if each is not None]
        learns = self.task.disclose == "supports" and self.session.me in self.task.learners
        return mask, _Level(
            sets[mask],
            np.concatenate([np.zeros(0, np.int64), *supports]) if learns else None,
            ReplicatedBits.stacked(products) if products else None,
        )

    async def _batch(
        self, lane: Session, number: int, operands: Operands | None
    ) -> tuple[Mask, Counts | None, ReplicatedBits | None]:
        """Of one batch which are frequent, their supports where this party learns them, and the products to be kept."""
        task, three = self.task, self.task.three
        found = None
        if operands is not None:
            found = await count(lane, self.secrets, three, *operands, self.n_rows, self.min_count)
        reached = None if found is None else found.reached
        planes = await opened(
            lane, reached, label="frequent", holders=three, number=number, width=1, to=self.session.parties
        )
        if planes is None:
            raise AssertionError("which candidates are frequent is opened to all")
        mask: Mask = words_of(planes, number) != 0
        frequent = int(mask.sum())
        products = None if found is None else found.products.bits(np.flatnonzero(mask))
        if task.disclose != "supports" or not frequent:
            return mask, None, products
        sums = await opened(
            lane.lane("supports"),
            None if found is None else found.counts.words(mask),
            label="supports",
            holders=three,
            number=frequent,
            width=count_width(self.n_rows),
            to=task.learners,
        )
        return mask, None if sums is None else words_of(sums, frequent).astype(np.int64), products


def batches(number: int, rows: int) -> list[slice]:
    """The candidates that are counted at once."""
    step = at_once(rows)
    return [slice(start, min(start + step, number)) for start in range(0, number, step)]
