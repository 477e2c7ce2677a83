"""One-shot joint mining in a constant number of rounds (Kantarcioglu & Clifton 2004, section 3; mixed thresholds).

If Σ(τ_i − 1) < c, an itemset of support ≥ c has a local count ≥ τ_i at some party. So every party mines what reaches
its τ_i, one union collects what is locally frequent somewhere, one batch of sums decides. The union carries the
locally *maximal* itemsets; their downward closure holds all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from link.errors import MalformedMessage
from link.journal import Known
from link.steps import step
from mining.counting import count_itemsets
from mining.data.rows import Rows
from mining.filters import downward_closure, maximal_sets
from mining.joint.horizontal.level_wise import Level
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.horizontal.universe import FrequentItems
from mining.joint.parameters import MAX_ENUMERATED, MAX_ONE_SHOT_LENGTH, most_enumerated, most_mined
from mining.joint.tally import Counts, Mask
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.local_counts import frequent_itemsets

_WIDTHS = ((1 << 8, 1), (1 << 16, 2), (1 << 24, 3), (1 << 32, 4))


async def one_shot(tally: HorizontalTally, items: FrequentItems) -> list[Level] | None:
    """All frequent itemsets of two or more items; None where some party's enumeration is unbounded.

    That some party's is, and nothing else, is opened to all: the level-wise strategy follows.
    """
    session, task, data = tally.session, tally.task, items.data
    width = index_width(data.n_items)
    longest = min(MAX_ONE_SHOT_LENGTH, task.max_length or MAX_ONE_SHOT_LENGTH)

    local = list[list[Sets] | None]()

    def mined() -> list[Sets] | None:
        if not local:  # once: in another attempt perhaps not at all
            local.append(locally_frequent(tally, data))
        return local[0]

    async def agree() -> Known:
        session.progress("local mining", 0, 1)
        is_bounded = await session.compute(mined) is not None
        session.progress("local mining", 1, 1)
        return Known(await tally.all_agree("bounded", is_bounded))

    async def unite() -> list[bytes]:
        found = await session.compute(mined)
        elements = _encode(found or [], data.n_items)
        return await tally.union("itemsets", elements, "itemsets", longest * width)

    if not (await step(session, "bounded", agree)).public:
        return None
    union = await tally.united("candidates", unite)
    found = _decode(union, data.n_items, longest)
    try:
        closure = await session.compute(downward_closure, found, most_enumerated(task))
    except EnumerationLimit:
        return None  # the union is public, so all parties stop here alike
    levels = [sets for sets in closure if sets.shape[1] > 1]

    async def decide() -> tuple[Mask, Counts | None]:
        counts = await session.compute(count_itemsets, data, levels)
        flat = np.concatenate(counts) if counts else np.empty(0, np.int64)
        return await tally.decide("one-shot", flat, most=items.most_together(tally))

    frequent, supports = await tally.decision("itemsets", sum(map(len, levels)), decide)
    masks = np.split(frequent, np.cumsum([len(sets) for sets in levels])[:-1]) if levels else []
    kept = [sets[mask] for sets, mask in zip(levels, masks, strict=True) if mask.any()]
    sums: Sequence[Counts | None] = [None] * len(kept)
    if supports is not None and kept:
        sums = np.split(supports, np.cumsum([len(sets) for sets in kept])[:-1])
    return list(zip(kept, sums, strict=True))


def locally_frequent(tally: HorizontalTally, data: Rows) -> list[Sets] | None:
    """What this party puts into the union, by length from 2 up; None where there is too much of it."""
    task = tally.task
    try:
        found = frequent_itemsets(
            data,
            tally.threshold,
            max_length=task.max_length or MAX_ONE_SHOT_LENGTH + 1,
            limit=most_mined(task),
            max_candidates=MAX_ENUMERATED,
        )
    except EnumerationLimit:
        return None
    levels = [sets for sets, _ in found.levels]
    if len(levels) > MAX_ONE_SHOT_LENGTH:
        return None
    chosen = maximal_sets(levels) if task.union == "maximal" else levels
    position = {item: index for index, item in enumerate(data.items)}
    public = np.array([position[item] for item in found.items], np.int32)
    return [np.sort(public[sets], axis=1) for sets in chosen if sets.shape[1] > 1 and len(sets)]


def index_width(n_items: int) -> int:
    """Bytes that hold any position among `n_items`, so that nearly every itemset is one block of the union."""
    return next(width for bound, width in _WIDTHS if n_items <= bound)


def _encode(levels: list[Sets], n_items: int) -> list[bytes]:
    """Itemsets as the big-endian positions of their items in the public dictionary, ascending."""
    width = index_width(n_items)
    elements: list[bytes] = []
    for sets in levels:
        packed = np.ascontiguousarray(sets.astype(">u4")).view(np.uint8).reshape(*sets.shape, 4)[:, :, 4 - width :]
        rows = np.ascontiguousarray(packed).tobytes()
        step = sets.shape[1] * width
        elements += [rows[start : start + step] for start in range(0, len(rows), step)]
    return elements


def _decode(union: list[bytes], n_items: int, longest: int) -> list[Sets]:
    """The itemsets of the union by length; every one is checked, for its closure is enumerated.

    Raises:
        MalformedMessage: One is not an ascending list of two to `longest` positions of the dictionary.
    """
    width = index_width(n_items)
    by_size: dict[int, list[bytes]] = {}
    for element in union:
        by_size.setdefault(len(element), []).append(element)
    levels: list[Sets] = []
    for size, elements in sorted(by_size.items()):
        length, rest = divmod(size, width)
        if rest or not 2 <= length <= longest:
            raise _malformed()
        packed = np.frombuffer(b"".join(elements), np.uint8).reshape(len(elements), length, width)
        wide = np.zeros((len(elements), length, 4), np.uint8)
        wide[:, :, 4 - width :] = packed
        sets = wide.view(">u4")[:, :, 0].astype(np.int64)
        if (np.diff(sets, axis=1) <= 0).any() or (sets >= n_items).any():
            raise _malformed()
        levels.append(sets.astype(np.int32))
    return levels


def _malformed() -> MalformedMessage:
    return MalformedMessage("the union of itemsets holds something that is none; check the versions of all nodes")
