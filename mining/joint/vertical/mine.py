"""Frequent itemsets over vertically partitioned data: every party holds columns of its own about the same people.

An itemset's support is the number of common rows in which every party's conjunction of the itemset's items there holds:
a product of bits over the parties, summed over the rows. Items of one party alone are counted by that party.

Steps:
    rows     the parties align their rows. After an intersection N is the number of positions; after a union, where
             nobody knows which positions the others have, N is the sum of the product of all presence columns
    level 1  every party names its frequent items. After an intersection it counts them itself; after a union they are
             decided on by number first, and the presence of all others is multiplied in, here and later
    level k  candidates are joined from the public frequent itemsets of level k − 1; an engine leaves the supports of
             those that span parties shared; one tally decides on all
    kept     the alignment, N and each level are steps (`link.steps`): another attempt of a job that failed has no
             candidates of levels that all have kept. Only where rules are decided on shares are the supports of the
             frequent itemsets of these levels shared once more

Rounds:     those of the alignment; then those of the engine and of a tally for each level; 3 more in another attempt.
Output:     all itemsets whose support among the common rows is at least c, exactly as if the tables were joined.
Adversary:  semi-honest parties; collusion as the engine bears it, and as in `tally` of what it leaves shared.
Leakage:    `disclosure.openings` lists all that is opened, `disclosure.learned` what follows from it.
Source:     Vaidya and Clifton, Privacy preserving association rule mining in vertically partitioned data, KDD 2002,
            section 3 (level-wise by scalar products); alignment and engines as in their modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.two_party import Pairs, beside, pairs_of
from crypto.protocols.products.outside_dealer import Dealings
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from crypto.protocols.sums.secure_sum import secure_sum
from link.errors import ProtocolViolation
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.candidates import join, most_candidates
from mining.data.table_rows import TableRows
from mining.itemsets import Itemsets
from mining.joint.align import Means
from mining.joint.parameters import JointItemsets
from mining.joint.shared_rules import decide_rules
from mining.joint.tally import Counts, Tally, no_sum
from mining.joint.vertical.aligned import Aligned, Conjunctions, align
from mining.joint.vertical.batches import set_addends
from mining.joint.vertical.choice import chosen_engine
from mining.joint.vertical.engines.engine import Setup
from mining.joint.vertical.engines.grouped import GroupedProducts, start_engine
from mining.joint.vertical.engines.products import Addends, Products
from mining.joint.vertical.grouped.items import GroupItems
from mining.joint.vertical.grouped.repeated import check_repeated
from mining.joint.vertical.names import Dictionary, dictionary_of, name_items
from mining.joint.vertical.parameters import VerticalMining, in_job_order
from mining.joint.vertical.refusals import no_common_row, too_many
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.thresholds import agreed_count


async def mine(
    session: Session,
    table: TableRows,
    task: VerticalMining,
    least_count: int = 1,
    dealings: Dealings | None = None,
    limits: ScratchLimits = IN_MEMORY,
) -> JointItemsets:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        table: This party's table.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for the least support of a frequent itemset.
        dealings: What this party has of the dealer, where the coordinator deals randomness.
        limits: What lists of ids may take at this party.

    Raises:
        ConfigurationError: min_support does not fit the number of common rows, there are too many candidates, two
            parties hold the same column, min_confidence has too many digits for so many rows, or the engine lacks a
            helper.
        InputDataError: No row is common to all parties, or this party's ids or numbers are none.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: What was opened cannot be sums of counts, or a peer has kept other results than this party.
    """
    setup = Setup(session.lane("engine"), task, await agree(session.lane("keys")), pairs_of(session), dealings)
    with closing(start_engine(chosen_engine(task), setup)) as engine:
        rows = align(session.lane("rows"), Means(setup.secrets, setup.pairs, limits), table, task)
        aligned, _ = await beside(rows, engine.prepare(table.n_rows))
        return await _mine(session, aligned, task, least_count, setup, engine, limits)


async def mine_aligned(
    session: Session,
    secrets: PairwiseSecrets,
    aligned: Aligned,
    task: VerticalMining,
    least_count: int = 1,
    dealings: Dealings | None = None,
) -> JointItemsets:
    """As `mine`, once rows are in the common order."""
    setup = Setup(session.lane("engine"), task, secrets, pairs_of(session), dealings)
    with closing(start_engine(chosen_engine(task), setup)) as engine:
        return await _mine(session, aligned, task, least_count, setup, engine, IN_MEMORY)


async def _mine(
    session: Session,
    aligned: Aligned,
    task: VerticalMining,
    least_count: int,
    setup: Setup,
    engine: Products,
    limits: ScratchLimits,
) -> JointItemsets:
    task = replace(task, compute=in_job_order(session.parties, task.compute))  # as the agreements of pairs have them
    run = await _Run.begin(session, aligned, task, least_count, setup, engine, limits)
    dictionary, conjunctions, first = await run.items()
    levels = [first]
    while task.allows(len(levels) + 1) and len(levels[-1].sets):
        levels.append(await run.level(dictionary, conjunctions, [level.sets for level in levels]))
    levels = [level for level in levels if len(level.sets)]
    itemsets = _assemble(dictionary, levels, run.tally)
    rules = None
    if task.rules is not None:
        addends = [
            await run.shared_again(level.sets, dictionary, conjunctions) if level.addends is None else level.addends
            for level in levels
        ]
        rules = await decide_rules(run.tally, itemsets, addends, task.rules)
    strategy = f"level-wise, {chosen_engine(task).name}"
    if session.me not in task.learners:
        return JointItemsets(run.tally.n_rows, None, strategy)
    return JointItemsets(run.tally.n_rows, itemsets, strategy, rules)


@dataclass(frozen=True, slots=True)
class _Level:
    """Frequent itemsets of one length.

    Attributes:
        sets: Shape (m, k), positions in the public dictionary.
        addends: Shape (m,), this party's addends of their supports; None of a level that an earlier attempt decided on.
        supports: Where this party learns them.
    """

    sets: Sets
    addends: Addends | None
    supports: Counts | None


@dataclass(frozen=True, slots=True)
class _Run:
    session: Session
    aligned: Aligned
    task: VerticalMining
    tally: Tally
    engine: Products
    pairs: Pairs
    limits: ScratchLimits

    @property
    def me(self) -> str:
        """Whose columns this party has: its own, or its group's."""
        return self.task.holder_of(self.session.me)

    @classmethod
    async def begin(
        cls,
        session: Session,
        aligned: Aligned,
        task: VerticalMining,
        least_count: int,
        setup: Setup,
        engine: Products,
        limits: ScratchLimits,
    ) -> _Run:
        """Counts the common rows, and derives c."""

        async def count() -> Known:
            if isinstance(engine, GroupedProducts):
                assert aligned.presence is not None  # since groups are aligned by union
                lane, agreed = session.lane("repeated"), (setup.secrets, setup.pairs, task.compute)
                await check_repeated(lane, *agreed, engine, aligned.presence, aligned.n_positions)
            return Known(await cls._common_rows(session, aligned, setup.secrets, engine, task.holders(session.parties)))

        n_rows = int((await step(session, "number of common rows", count)).public)
        if aligned.presence is None and n_rows != aligned.n_positions:
            raise ProtocolViolation(
                "the parties have another number of rows in common than in an earlier attempt, so somebody's rows have "
                "changed; check all nodes, and run the job again as a new one",
                party=session.others[0] if len(session.others) == 1 else None,
            )
        if n_rows == 0:
            raise no_common_row()
        min_count = agreed_count(task.min_support, n_rows, floor=least_count, me=session.me, rows="the common rows")
        two_party = None
        if task.disclose != "candidates" and session.me in task.compute:
            (peer,) = set(task.compute) - {session.me}
            two_party = setup.pairs[peer]
        tally = Tally(session, setup.secrets, two_party, task, n_rows, min_count)
        return cls(session, aligned, task, tally, engine, setup.pairs, limits)

    @staticmethod
    async def _common_rows(
        session: Session, aligned: Aligned, secrets: PairwiseSecrets, engine: Products, holders: Sequence[str]
    ) -> int:
        n_positions = aligned.n_positions
        if aligned.presence is None or not n_positions:
            return n_positions
        everybody = [dict.fromkeys(holders, 0)]
        presence = aligned.presence[None].view(np.uint8)
        addends = await engine.addends(session.lane("presence"), presence, n_positions, everybody)
        total = await secure_sum(session.lane("common"), secrets, addends, label="rows")
        if total is None:
            raise AssertionError("the number of rows is opened to all")
        if int(total[0]) > n_positions:
            raise no_sum(session)
        return int(total[0])

    async def items(self) -> tuple[Dictionary, Conjunctions, _Level]:
        """The public dictionary of frequent items, this party's of them, and level 1."""
        session, decided = self.session, list[tuple[Dictionary, Conjunctions, _Level]]()
        session.progress("itemsets of 1", 0, 1)

        async def take() -> Known:
            decided.append(await self._decide_items())
            dictionary, _, level = decided[0]
            places = dictionary.places.items()  # in the dictionary's order: a group's own is that of this session
            names = [(party, [dictionary.items[place] for place in np.sort(of_party)]) for party, of_party in places]
            return self._known(names, level.supports)

        known = await step(session, "itemsets of 1", take)
        session.progress("itemsets of 1", 1, 1)
        if decided:
            return decided[0]
        names = {party: list(of_party) for party, of_party in known.public}
        dictionary = dictionary_of(self.task.holders(session.parties), self.me, names)
        number_of = {item: number for number, item in enumerate(self.aligned.columns.items)}
        numbers = np.array([number_of.get(name, -1) for name in names[self.me]], np.int64)
        return dictionary, await self._conjunctions(numbers), _Level(_singles(dictionary), None, known.learned)

    async def _decide_items(self) -> tuple[Dictionary, Conjunctions, _Level]:
        session, columns = self.session, self.aligned.columns
        if self.task.groups:
            numbers, addends, named = await self._decide_items_of_groups()
            dictionary = dictionary_of(self.task.holders(session.parties), self.me, named)
        else:
            counts = columns.counts()
            numbers = np.flatnonzero(counts >= self.tally.min_count)  # no others can be frequent among the common rows
            if self.aligned.presence is None:
                addends = {session.me: counts[numbers].astype(np.uint64)}
            else:
                numbers, addends = await self._decide_by_number(numbers)
            names = [columns.items[number] for number in numbers]
            dictionary = await name_items(session.lane("items"), "items", names)
        ordered = np.zeros(len(dictionary.items), np.uint64)
        for party, part in addends.items():
            ordered[dictionary.places[party]] = part
        supports = await self.tally.supports("level-1/supports", ordered)
        conjunctions = await self._conjunctions(numbers)
        return dictionary, conjunctions, _Level(_singles(dictionary), ordered, supports)

    def _known(self, public: Any, supports: Counts | None) -> Known:
        """The result of a level, of which supports are opened to the learners, if at all."""
        return Known(public, supports, () if self.task.disclose == "frequent" else self.task.learners)

    async def shared_again(self, sets: Sets, dictionary: Dictionary, conjunctions: Conjunctions) -> Addends:
        """This party's addends of the supports of itemsets on which an earlier attempt has decided."""
        return await self._addends(f"level-{sets.shape[1]}/again", sets, dictionary, conjunctions)

    async def level(self, dictionary: Dictionary, conjunctions: Conjunctions, found: list[Sets]) -> _Level:
        """The frequent itemsets of the next length, from those of all shorter ones."""
        session, frequent, length = self.session, found[-1], len(found) + 1
        limit = most_candidates(found[1:], length, self.task.max_candidates)
        decided = list[Addends]()
        session.progress(f"itemsets of {length}", 0, 1)  # not how many: the coordinator need not learn the result

        async def take() -> Known:
            try:
                sets = (await session.compute(join, frequent, limit)).sets
            except EnumerationLimit:
                raise too_many(length, limit) from None
            addends = await self._addends(f"level-{length}", sets, dictionary, conjunctions)
            mask, supports = await self.tally.decide(f"level-{length}/decision", addends)
            decided.append(addends[mask])
            return self._known(sets[mask], supports)

        known = await step(session, f"itemsets of {length}", take)
        session.progress(f"itemsets of {length}", 1, 1)
        return _Level(known.public, decided[0] if decided else None, known.learned)

    async def _addends(self, name: str, sets: Sets, dictionary: Dictionary, conjunctions: Conjunctions) -> Addends:
        """This party's addends of the supports of candidates over the public dictionary."""
        return await set_addends(
            self.session.lane(name),
            self.engine,
            conjunctions,
            sets,
            holders=self.task.holders(self.session.parties),
            me=self.me,
            holder=dictionary.holder,
            own=dictionary.numbers,
            n_positions=self.aligned.n_positions,
            everywhere=self.aligned.presence is None,
            named=True,
        )

    async def _decide_by_number(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[str, Addends]]:
        """Which of this party's items are frequent among the common rows; and by party its addends of frequent ones.

        Of an item only its number is known to the others until it is found to be frequent.
        """
        lane = self.session.lane("level-1")
        await lane.open("item_numbers", np.array([len(numbers)], np.uint32))
        found = dict.fromkeys(lane.parties, len(numbers))
        for peer in lane.others:
            found[peer] = int((await lane.receive_opened(peer, "item_numbers", np.uint32, (1,)))[0])
        masks, addends = await self._decide_numbered(lane, found, numbers)
        return numbers[masks[lane.me]], addends

    async def _decide_items_of_groups(self) -> tuple[NDArray[np.int64], dict[str, Addends], dict[str, list[str]]]:
        """Of this party's group, which of its own items the frequent ones are; by group, their addends and names."""
        lane, task = self.session.lane("level-1"), self.task
        counted = (self.aligned.columns, self.tally.min_count)
        items = await GroupItems.of(lane.lane("items"), self.pairs, task.groups, *counted, self.limits)
        masks, addends = await self._decide_numbered(lane, items.sizes, items.numbers)
        return items.numbers[masks[self.me]], addends, await items.named(masks[self.me])

    async def _decide_numbered(
        self, lane: Session, found: Mapping[str, int], numbers: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[np.bool_]], dict[str, Addends]]:
        """By holder, which of its numbered items are frequent, and this party's addends of those.

        Args:
            lane: Of level 1.
            found: By holder, how many there are.
            numbers: Of the items that this party has of its holder's.
        """
        if sum(found.values()) > self.task.max_candidates:
            raise too_many(1, self.task.max_candidates)
        held = await self._conjunctions(numbers)
        with_presence = np.concatenate([held.bitmaps, held.nothing[None]]).view(np.uint8)
        itemsets = [{**found, holder: number} for holder in found for number in range(found[holder])]
        addends = await self.engine.addends(lane, with_presence, self.aligned.n_positions, itemsets)
        mask, _ = await self.tally.decide("level-1/decision", addends, supports=False)
        stops = np.cumsum(list(found.values()))[:-1]
        masks = dict(zip(found, np.split(mask, stops), strict=True))
        parts = dict(zip(found, np.split(addends, stops), strict=True))
        return masks, {holder: parts[holder][masks[holder]] for holder in found}

    async def _conjunctions(self, numbers: NDArray[np.int64]) -> Conjunctions:
        """Of this party's items; where it is in a group, of the group's, of which it may lack some."""
        made = Conjunctions.of_group if self.task.groups else Conjunctions.of
        return await self.session.compute(made, self.aligned, numbers)


def _singles(dictionary: Dictionary) -> Sets:
    return np.arange(len(dictionary.items), dtype=np.int32)[:, None]


def _assemble(dictionary: Dictionary, levels: list[_Level], tally: Tally) -> Itemsets:
    filled = [
        (level.sets, np.zeros(len(level.sets), np.int64) if level.supports is None else level.supports)
        for level in levels
    ]
    return Itemsets(dictionary.items, filled, tally.n_rows, counted=tally.task.disclose != "frequent")
