"""Whether some id is at two parties of one column group, so that its rows would count twice.

For every two members of a group an engine multiplies the columns that mark where they have rows. All these counts are
added up as shares, and the computing parties compare the sum with 1: that is all that is opened.

Rounds: those of the engine, of a shared sum and of a comparison.
Output: an error at all parties if there is such an id; not whose, which, or how many.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.products.chains import Itemset
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.errors import InputDataError, shareable
from link.session import Session
from mining.joint.vertical.engines.grouped import GroupedProducts
from mining.joint.vertical.grouped.groups import Groups

LABEL = "repeated"


def member_pairs(groups: Groups) -> list[Itemset]:
    """What an engine multiplies: the first column of every two members of a group."""
    return [dict.fromkeys(pair, 0) for group in groups for pair in combinations(group.members, 2)]


async def check_repeated(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    compute: tuple[str, str],
    engine: GroupedProducts,
    presence: NDArray[np.uint64],
    n_positions: int,
) -> None:
    """Ends the job if some id is at two members of a group.

    Args:
        session: A lane of its own.
        secrets: From `pairwise.agree` in this session.
        pairs: From `two_party.pairs_of` in this session.
        compute: The two computing parties, in the order of the job.
        engine: For the groups.
        presence: Packed: at which positions this party has a row after a union.
        n_positions: Number of positions.

    Raises:
        InputDataError: There is such an id.
    """
    itemsets = member_pairs(engine.groups)
    if not itemsets or not n_positions:
        return
    columns = presence[None].view(np.uint8)
    addends = await engine.of_parties.addends(session.lane("products"), columns, n_positions, itemsets)
    total = addends.sum(dtype=np.uint64)[None]
    share, bits = await shared_sum(session.lane("sum"), secrets, total, compute), None
    if share is not None:
        (peer,) = set(compute) - {session.me}
        width = width_for(n_positions * len(itemsets))
        bits = await at_least(session.lane("comparison"), pairs[peer], share, 1, width)
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
