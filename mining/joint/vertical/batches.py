"""How many common rows meet all conditions of a set, for many sets: in batches, so that no party's memory fills up.

A condition, such as to hold an item, lies at one party. Sets of one party alone are counted by it where every row is
everywhere; an engine leaves the counts of all others shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.session import Session
from mining.data.items.bitmaps import popcounts
from mining.joint.vertical.aligned import Conjunctions
from mining.joint.vertical.engines.products import Addends, Products
from mining.joint.vertical.split import Split
from mining.lattice import Sets

BATCH_BYTES: Final = 256 << 20  # of one party's conjunctions at a time


async def set_addends(
    session: Session,
    engine: Products,
    conjunctions: Conjunctions,
    sets: Sets,
    *,
    holders: Sequence[str],
    me: str,
    holder: NDArray[np.int64],
    own: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    n_positions: int,
    everywhere: bool,
    named: bool = False,
) -> Addends:
    """This party's addends of how many common rows meet all conditions of each set.

    Args:
        session: A lane of its own, equal at all parties.
        engine: Multiplies what lies at several parties.
        conjunctions: Of this party's conditions.
        sets: Shape (m, k), numbers of conditions; public.
        holders: The parties that hold conditions, or groups of parties that hold the same ones together.
        me: This party, or its group.
        holder: By condition the number of its holder; −1 for what means none.
        own: From numbers of conditions to places among this holder's; −1 for those of others.
        n_positions: Number of positions.
        everywhere: Whether every position has a row at every party.
        named: Whether a condition has the same number in all calls of the engine that are named, one after the other.

    Returns:
        Shape (m,): all parties' add up to the counts, modulo 2^64.
    """
    total = np.zeros(len(sets), np.uint64)
    step = max(1, BATCH_BYTES // max(1, 8 * len(conjunctions.nothing)))
    for batch, start in enumerate(range(0, len(sets), step)):
        part = sets[start : start + step]
        split = await session.compute(Split.of, part, holder, holders, everywhere=everywhere)
        bits = await session.compute(conjunctions, own(split.members[me]))
        alone = np.flatnonzero(split.owner == holders.index(me))
        total[start + alone] = popcounts(bits[split.used[me][alone]])
        spanning = split.spanning
        if len(spanning):
            itemsets = await session.compute(split.itemsets)
            lane = session.lane(str(batch))
            names = split.names() if named else None
            total[start + spanning] = await engine.addends(lane, bits.view(np.uint8), n_positions, itemsets, names)
    return total
