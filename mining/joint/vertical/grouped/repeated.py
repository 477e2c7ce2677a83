"""Whether some id is at two parties of one column group, so that its rows would count twice.

For every two members of a group an engine multiplies the columns that mark where they have rows. All these counts are
added up as shares, and the computing parties compare the sum with 1: that is all that is opened.

Rounds: those of the engine, of a shared sum and of a comparison.
Output: an error at all parties if there is such an id; not whose, which, or how many.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.products.chains import Itemset
from crypto.protocols.sums.secure_sum import shared_sum
from link.errors import InputDataError, shareable
from link.session import Session
from mining.joint.vertical.aligned import Aligned
from mining.joint.vertical.engines.engine import Setup
from mining.joint.vertical.engines.products import Products
from mining.joint.vertical.grouped.groups import Groups
from mining.joint.vertical.parameters import in_job_order

LABEL = "repeated"


def member_pairs(groups: Groups) -> list[Itemset]:
    """What an engine multiplies: the first column of every two members of a group."""
    return [dict.fromkeys(pair, 0) for group in groups for pair in combinations(group.members, 2)]


async def check_repeated(session: Session, setup: Setup, engine: Products, aligned: Aligned) -> None:
    """Ends the job if some id is at two members of a group.

    Args:
        session: A lane of its own.
        setup: Of the engine.
        engine: For columns of parties.
        aligned: This party's rows, after a union.

    Raises:
        InputDataError: There is such an id.
    """
    itemsets, n_positions, presence = member_pairs(setup.task.groups), aligned.n_positions, aligned.presence
    if not itemsets or not n_positions or presence is None:
        return
    compute = in_job_order(session.parties, setup.task.compute)
    addends = await engine.addends(session.lane("products"), presence[None].view(np.uint8), n_positions, itemsets)
    total = addends.sum(dtype=np.uint64)[None]
    share, bits = await shared_sum(session.lane("sum"), setup.secrets, total, compute), None
    if share is not None:
        (peer,) = set(compute) - {session.me}
        width = width_for(n_positions * len(itemsets))
        bits = await at_least(session.lane("comparison"), setup.pairs[peer], share, 1, width)
    opened = await open_bits(session, bits, label=LABEL, holders=compute, number=1)
    if opened is None:
        raise AssertionError("whether an id is repeated is opened to all")
    if opened[0]:
        raise shareable(
            InputDataError(
                "some id is at two parties of one column group, and nobody learns which or whose: find it by a job "
                'with task = "align" among the parties of each group, and leave its row out at one of them'
            )
        )
