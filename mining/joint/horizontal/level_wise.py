"""Level-wise joint mining: the candidates of level k + 1 come from the public frequent itemsets of level k.

Un-thinned, each level is one batch of sums; candidates follow from the output of the level before, so levels above the
first disclose nothing but what the tally opens of them. Where sums stay shared, the supports of what is frequent are
opened for all levels at once, at the end: no candidate depends on them, and a level takes a round less. Thinned
(Kantarcioglu & Clifton 2004, section 3), each level first takes a union of the candidates that are locally frequent
somewhere: fewer sums, more disclosed.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, MalformedMessage, shareable
from link.journal import Known
from link.steps import step
from mining.candidates import join, most_candidates
from mining.counting import LevelCounter
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.horizontal.universe import FrequentItems
from mining.joint.tally import Counts, Mask
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.local_counts import counter_of
from mining.pairs import n_pairs

Level = tuple[Sets, Counts | None]

SUPPORTS: Final = "supports"  # name of the lane
INDEX_BYTES = 4  # of a candidate's position in the public sequence of its level


async def level_wise(tally: HorizontalTally, items: FrequentItems) -> list[Level]:
    """All frequent itemsets of two or more items, with their supports at a learner.

    Raises:
        ConfigurationError: A level has more candidates than `most_candidates` allows.
    """
    session, task = tally.session, tally.task
    counter, most = counter_of(items.data), items.most_together(tally)
    # Of what has been decided with the items, all is known.
    known: list[Level] = [] if items.pairs is None else [items.pairs]
    levels: list[Level] = []
    unopened: list[Counts] = []  # by level, this party's counts of what is frequent
    for sets, _ in known:
        counter.advance(sets)
        if not len(sets):
            return []
    length = 2 + len(known)
    while task.allows(length):
        session.progress(f"itemsets of {length}", 0, 1)  # not how many: the coordinator need not learn the result
        if length == 2:
            if n_pairs(items.data.n_items) > task.max_candidates:
                raise _too_many(length, task.max_candidates)
            counts = await session.compute(counter.count_pairs)
        else:
            found = [sets for sets, _ in known + levels]
            limit = most_candidates(found, length, task.max_candidates)
            counts = await session.compute(_count_next, counter, found[-1], length, limit)
        decide = partial(_decide, tally, f"level-{length}", counts, most)
        frequent, supports = await tally.decision(
            f"itemsets of {length}", len(counts), decide, supports=not task.is_shared
        )
        session.progress(f"itemsets of {length}", 1, 1)
        if not frequent.any():
            break
        levels.append((counter.keep(frequent), supports))
        if task.is_shared:
            unopened.append(counts[frequent])
        length += 1
    if unopened:
        sums = await _supports(tally, np.concatenate(unopened), most)
        if sums is not None:
            parts = np.split(sums, np.cumsum([len(counts) for counts in unopened])[:-1])
            levels = [(sets, part) for (sets, _), part in zip(levels, parts, strict=True)]
    return known + levels


async def _supports(tally: HorizontalTally, counts: Counts, most: int | None) -> Counts | None:
    """The supports of all levels, at a learner."""
    to = () if tally.task.disclose == "frequent" else tally.task.learners

    async def take() -> Known:
        return Known(None, await tally.supports(SUPPORTS, counts, most), to)

    sums: Counts | None = (await step(tally.session, SUPPORTS, take)).learned
    return sums


def _count_next(counter: LevelCounter, frequent: Sets, length: int, limit: int) -> Counts:
    try:
        return counter.count(join(frequent, limit))
    except EnumerationLimit:
        raise _too_many(length, limit) from None


async def _decide(tally: HorizontalTally, name: str, counts: Counts, most: int | None) -> tuple[Mask, Counts | None]:
    """Which candidates are frequent, and their supports where all sums are opened."""
    opened = not tally.task.is_shared
    if not tally.thins or not len(counts):  # no candidates, as all parties know: there is nothing to thin
        return await tally.decide(name, counts, supports=opened, most=most)
    here = np.flatnonzero(counts >= tally.threshold)
    elements = [int(position).to_bytes(INDEX_BYTES, "big") for position in here]
    union = await tally.union(f"{name}/thin", elements, "candidates", INDEX_BYTES)
    positions = _positions(union, len(counts))
    among, supports = await tally.decide(name, counts[positions], supports=opened, most=most)
    frequent = np.zeros(len(counts), bool)
    frequent[positions] = among
    return frequent, supports


def _positions(union: list[bytes], size: int) -> NDArray[np.int64]:
    """The candidates' positions, ascending as their big-endian bytes are."""
    if any(len(element) != INDEX_BYTES for element in union):
        raise MalformedMessage("the union of candidates holds something else; check the versions of all nodes")
    positions = np.frombuffer(b"".join(union), ">u4").astype(np.int64)
    if len(positions) and positions[-1] >= size:
        raise MalformedMessage("the union of candidates names one that does not exist; check the versions of all nodes")
    return positions


def _too_many(length: int, limit: int) -> ConfigurationError:
    return shareable(
        ConfigurationError(
            f"there are more than {limit} candidates of {length} items; raise min_support, set max_length, "
            "or raise [itemsets] max_candidates"
        )
    )
