"""Level 1 without a word of infrequent items: candidates are counted under joint pseudonyms.

Steps:
    A  pseudonyms   every party learns the joint pseudonyms of its own items, and of no others
    B  positions    a set union of the pseudonyms of all parties' locally frequent items; an item of support ≥ c is
                    locally frequent somewhere, so no frequent item is lost (`hidden`); or of all their items
                    (`hidden-all`). Every party's set is filled up with random pseudonyms, and so is the union: its
                    length is public beforehand
    C  level 1      every party counts, position by position, the item behind it; 0 where it knows none
    D  names        a union by prefixes of the names of the items at frequent positions, said by those who hold them
    E  supports     of these, where the job discloses them: now in the order of the names

Rounds: those of `joint_prf`, of both unions, of a tally and of a sum.
Output: the frequent items and, to the learners, their supports.
Adversary and collusion: those of the protocols it consists of.
Leakage: `hidden_disclosure`. A position is of no use to a party that does not hold its item, since nobody can compute
    another's pseudonyms. With `hidden`, a party sees of an item that it holds itself whether it is at some position,
    that is locally frequent at some party. With `hidden-all` all its items are at some position, as it knows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from crypto.protocols.union.joint_prf import pseudonyms
from crypto.protocols.union.prefix_union import prefix_union
from crypto.protocols.union.set_union import set_union
from link.errors import ProtocolViolation
from mining.data.rows import Rows
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.item_names import counts_of, decoded, encoded
from mining.joint.tally import Counts

PSEUDONYMS: Final = "pseudonyms"  # names of the lanes
POSITIONS: Final = "positions"  # also the label of step B
VOTE: Final = "level-1"
ITEMS: Final = "items"  # also the label of step D
SUPPORTS: Final = "level-1/supports"


async def hidden_items(tally: HorizontalTally, data: Rows) -> tuple[tuple[str, ...], Counts | None]:
    """Finds the frequent items.

    Args:
        tally: The parties' means to decide.
        data: This party's transactions.

    Returns:
        The frequent items in ascending order of UTF-8 bytes; their supports, where this party learns them.

    Raises:
        ConfigurationError: Some party holds more items than the job's bound on sets, or the name of a frequent item is
            too long; nobody learns whose.
        ProtocolViolation: The names that came out are not those of the frequent positions.
    """
    session, task = tally.session, tally.task
    counts = data.item_counts()
    held = np.flatnonzero(counts)
    names = [data.items[item] for item in held]
    found = await pseudonyms(  # A
        session.lane(PSEUDONYMS),
        tally.secrets,
        [name.encode() for name in names],
        bound=task.bound,
        colluders=withstood(len(session.parties)),
    )
    own = [row.tobytes() for row in found]

    least = 1 if task.universe == "hidden-all" else tally.threshold
    positions = await set_union(  # B
        session.lane(POSITIONS),
        tally.secrets,
        [pseudonym for pseudonym, count in zip(own, counts[held], strict=True) if count >= least],
        merger=task.merger,
        bound=task.bound,
        label=POSITIONS,
    )
    behind = dict(zip(own, counts[held].tolist(), strict=True))
    counted = np.array([behind.get(position, 0) for position in positions], np.int64)
    frequent, _ = await tally.decide(VOTE, counted, supports=False)  # C

    chosen = {positions[place] for place in np.flatnonzero(frequent)}
    mine = [name for name, pseudonym in zip(names, own, strict=True) if pseudonym in chosen]
    items = await frequent_names(tally, mine, len(chosen)) if chosen else ()  # D
    return items, await tally.supports(SUPPORTS, counts_of(data, items))  # E


def withstood(parties: int) -> int:
    """How many colluders cannot compute others' pseudonyms: as many as learn nothing from the sums."""
    return max(1, parties - 2)


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
