"""Level 1: which items there are, and which of them are frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from link.journal import Known
from link.steps import step
from mining.data.rows import Rows
from mining.joint.horizontal.hidden_universe import hidden_items
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.item_names import counts_of, decoded, encoded
from mining.joint.tally import Counts, Mask


@dataclass(frozen=True, slots=True)
class FrequentItems:
    """The frequent items and this party's rows on them.

    Attributes:
        data: This party's transactions, its dictionary the frequent items in ascending order of UTF-8 bytes.
        supports: Shape (K,), where this party is a learner.
    """

    data: Rows
    supports: Counts | None

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

    async def decide() -> tuple[Mask, Counts | None]:
        return await tally.decide("level-1", counts_of(data, universe))

    frequent, supports = await tally.decision("itemsets of 1", len(universe), decide)
    kept = tuple(item for item, keep in zip(universe, frequent, strict=True) if keep)
    return FrequentItems(await tally.session.compute(data.onto, kept), supports)


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
