"""Level 1 without a word of infrequent items: candidates are counted at positions that nobody connects with others.

Steps:
    A  positions    the parties' items are aligned by union: every party learns the position of each of its own items,
                    which is the same at all that hold the item, and nobody learns whose items are the same. There are
                    as many positions as all parties' lists have places, which is public beforehand
    B  level 1      every party counts, position by position, its own item there; 0 where it has none
    C  names        a union by prefixes of the names of the items at frequent positions, said by those who hold them
    D  supports     of these, where the job discloses them: now in the order of the names

Rounds: those of `alignment.union`, of a tally, of a union by prefixes and of a sum.
Output: the frequent items and, to the learners, their supports.
Adversary and collusion: those of the protocols it consists of.
Leakage: `hidden_disclosure`. All parties learn which positions are frequent. Of its own items a party learns so which
    are, as the output says. The other frequent positions are drawn from all that it does not know, whoever the holders
    are; also to n − 1 colluders, who know by their own items which frequent ones only the last party holds. Positions
    are drawn anew in every run.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.union.prefix_union import prefix_union
from link.errors import ProtocolViolation
from mining.data.rows import Rows
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.item_names import counts_of, decoded, encoded
from mining.joint.tally import Counts

POSITIONS: Final = "item-positions"  # names of the lanes
VOTE: Final = "level-1"
ITEMS: Final = "items"  # also the label of step C
SUPPORTS: Final = "level-1/supports"
POSITIONS_LABEL: Final = "item_positions"  # of step A
_KEY: Final = "[union] bound"  # of the job, which bounds the number of items


async def hidden_items(
    tally: HorizontalTally, data: Rows, limits: ScratchLimits = IN_MEMORY
) -> tuple[tuple[str, ...], Counts | None]:
    """Finds the frequent items.

    Args:
        tally: The parties' means to decide.
        data: This party's transactions.
        limits: What lists of items may take of memory.

    Returns:
        The frequent items in ascending order of UTF-8 bytes; their supports, where this party learns them.

    Raises:
        ConfigurationError: Some party holds more items than the job's bound on sets, or the name of a frequent item is
            too long; nobody learns whose.
        MalformedMessage: A peer's messages are not as they must be.
        ProtocolViolation: What came out are no positions of this party's items, or the names that came out are not
            those of the frequent positions.
    """
    session, task = tally.session, tally.task
    counts = data.item_counts()
    held = np.flatnonzero(counts)
    names = [data.items[item] for item in held]
    placed = await alignment.union(  # A
        session.lane(POSITIONS),
        tally.secrets,
        tally.pairs,
        [name.encode() for name in names],
        merger=task.merger,
        bound=task.bound,
        label=POSITIONS_LABEL,
        key=_KEY,
        limits=limits,
    )
    counted = np.append(counts[held], 0)[placed]  # −1 where this party has no item
    frequent, _ = await tally.decide(VOTE, counted, supports=False)  # B

    chosen = placed[frequent]
    mine = [names[place] for place in chosen[chosen >= 0]]
    items = await frequent_names(tally, mine, len(chosen)) if len(chosen) else ()  # C
    return items, await tally.supports(SUPPORTS, counts_of(data, items))  # D


async def frequent_names(tally: HorizontalTally, mine: list[str], number: int) -> tuple[str, ...]:
    """The names of all frequent items. As many are frequent as all know, so this bounds every party's set."""
    session = tally.session
    union = await prefix_union(
        session.lane(ITEMS),
        tally.secrets,
        tally.pairs,
        encoded(mine),
        max_element_bytes=tally.task.max_item_bytes,
        bound=number,
        label=ITEMS,
    )
    if len(union) != number:
        raise ProtocolViolation(
            "the names of the frequent items are not as many as there are frequent items, so a node is faulty or has "
            "another version; check all nodes",
            party=session.others[0] if len(session.others) == 1 else None,
        )
    return decoded(union)
