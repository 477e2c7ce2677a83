"""Level 1: which items there are, and which of them are frequent; where that is one batch, also which pairs are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from link.journal import Known
from link.steps import step
from mining.data.rows import Rows
from mining.joint.horizontal.hidden_universe import hidden_items
from mining.joint.horizontal.strategy import pairs_with_items
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.item_names import counts_of, decoded, encoded
from mining.joint.tally import Counts, Mask, no_sum
from mining.lattice import Sets
from mining.local_counts import counter_of
from mining.pairs import pairs_at


@dataclass(frozen=True, slots=True)
class FrequentItems:
    """The frequent items and this party's rows on them.

    Attributes:
        data: This party's transactions, its dictionary the frequent items in ascending order of UTF-8 bytes.
        supports: Shape (K,), where this party is a learner.
        pairs: The frequent pairs and their supports likewise, where they have been decided with the items.
    """

    data: Rows
    supports: Counts | None
    pairs: tuple[Sets, Counts | None] | None = None

    def most_together(self, tally: HorizontalTally) -> int | None:
        """What no support of two or more items is above: that of the second most frequent item.

        Returns:
            None where not every party learns supports.
        """
        if self.supports is None or not tally.task.all_learn(tally.session.parties):
            return None
        return int(np.sort(self.supports)[-2:][0]) if len(self.supports) else None


async def frequent_items(tally: HorizontalTally, data: Rows, limits: ScratchLimits = IN_MEMORY) -> FrequentItems:
    """Agrees on a universe of items and decides which are frequent.

    `frequent-items`: an item of support ≥ c reaches the local threshold of some party, so the union of the locally
    frequent items loses nothing, and names of items that are frequent nowhere are never said.
    `catalogue`: items that it does not name are left out without a word, at every party alike: an error would reveal
    that somebody has such an item.
    `hidden`: at positions, so that only frequent items are ever named; see `hidden_universe`.

    Args:
        tally: The parties' means to decide.
        data: This party's transactions.
        limits: What lists of a hidden universe's items may take of memory.
    """
    if tally.task.hides_names:
        items, supports = await _hidden(tally, data, limits)
        return FrequentItems(await tally.session.compute(data.onto, items), supports)
    universe = await _universe(tally, data)
    if pairs_with_items(tally.task, len(universe)):
        return await _with_pairs(tally, data, universe)

    async def decide() -> tuple[Mask, Counts | None]:
        return await tally.decide("level-1", counts_of(data, universe))

    frequent, supports = await tally.decision("itemsets of 1", len(universe), decide)
    kept = tuple(item for item, keep in zip(universe, frequent, strict=True) if keep)
    return FrequentItems(await tally.session.compute(data.onto, kept), supports)


async def _with_pairs(tally: HorizontalTally, data: Rows, universe: tuple[str, ...]) -> FrequentItems:
    """Items and pairs of the universe in one batch."""
    on_all = await tally.session.compute(data.onto, universe)
    pairs = await tally.session.compute(counter_of(on_all).count_pairs)
    counts = np.concatenate([counts_of(data, universe), pairs])

    async def decide() -> tuple[Mask, Counts | None]:
        return await tally.decide("level-1", counts)

    frequent, supports = await tally.decision("itemsets of 1 and 2", len(counts), decide)
    items, of_pairs = np.split(frequent, [len(universe)])
    sets = pairs_at(np.flatnonzero(of_pairs), len(universe))
    if not items[sets].all():
        raise no_sum(tally.session)
    places = (np.cumsum(items) - 1).astype(np.int32)
    kept = tuple(item for item, keep in zip(universe, items, strict=True) if keep)
    of_items, of_sets = (None, None) if supports is None else np.split(supports, [len(kept)])
    found = FrequentItems(await tally.session.compute(data.onto, kept), of_items, (places[sets], of_sets))
    most = found.most_together(tally)
    if most is not None and of_sets is not None and (of_sets > most).any():
        raise no_sum(tally.session)
    return found


async def _universe(tally: HorizontalTally, data: Rows) -> tuple[str, ...]:
    task = tally.task
    if task.universe == "catalogue":
        if task.catalogue is None:
            raise AssertionError("a catalogue is read before the job is proposed")
        return task.catalogue

    async def unite() -> list[bytes]:
        least = 1 if task.universe == "all-items" else tally.threshold
        names = encoded(data.items[i] for i in np.flatnonzero(data.item_counts() >= least))
        return await tally.union("items", names, "items", task.max_item_bytes)

    return decoded(await tally.united("universe", unite))


async def _hidden(tally: HorizontalTally, data: Rows, limits: ScratchLimits) -> tuple[tuple[str, ...], Counts | None]:
    """The frequent items and their supports, of which nothing but themselves is known: one step."""
    to = () if tally.task.disclose == "frequent" else tally.task.learners

    async def take() -> Known:
        items, supports = await hidden_items(tally, data, limits)
        return Known(items, supports, to)

    known = await step(tally.session, "itemsets of 1", take)
    return known.public, known.learned
