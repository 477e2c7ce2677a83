"""Frequent itemsets over horizontally partitioned transactions: every party holds whole rows of its own.

Rounds:     constant for the one-shot strategy; one secure sum and one batched comparison per level for the level-wise
            one.
Output:     all itemsets whose support over all parties is at least c, exactly as if the rows were pooled.
Adversary:  semi-honest parties; where the job asks for more, as of `verified_tally`. Sums are private against any n − 2
            colluders; sums that stay shared, against any colluders but both computing parties together, or any two of
            three, who learn the sum over the others.
Leakage:    `disclosure.openings` lists all that is opened, `disclosure.learned` what follows from it.
Source:     Kantarcioglu & Clifton, Privacy-preserving distributed mining of association rules on horizontally
            partitioned data, IEEE TKDE 16(9), 2004; Agrawal & Srikant, Fast algorithms for mining association rules,
            VLDB 1994; local thresholds as in `mining.thresholds`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.two_party import TwoParty, beside, pairs_of
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.union.shared_or import prepared
from link.session import Session
from link.tasks import together
from mining.counting import count_itemsets
from mining.data.rows import Rows
from mining.itemsets import Itemsets
from mining.joint.horizontal.level_wise import Level, level_wise
from mining.joint.horizontal.one_shot import one_shot
from mining.joint.horizontal.strategy import choose
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.horizontal.universe import FrequentItems, frequent_items
from mining.joint.horizontal.verified_tally import VerifiedTally
from mining.joint.parameters import HorizontalMining, JointItemsets
from mining.joint.shared_rules import decide_rules


async def mine(
    session: Session,
    data: Rows,
    task: HorizontalMining,
    least_count: int = 1,
    limits: ScratchLimits = IN_MEMORY,
) -> JointItemsets:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        data: This party's transactions; perhaps none.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for the least support of a frequent itemset.
        limits: What lists of a hidden universe's items may take of memory.

    Raises:
        ConfigurationError: min_support does not fit the number of transactions, there are too many candidates, or
            min_confidence has too many digits for so many transactions.
        InputDataError: No party has any transaction, or an item is not in the public catalogue.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: What was opened cannot be sums of counts.
    """
    pairs, two_party = pairs_of(session.lane("pairs")), None
    if task.is_shared and task.helper is None and not task.is_verified and session.me in task.compute:
        two_party = TwoParty(session.lane("two-party"), task.compute)
        pairs[two_party.peer] = two_party
    # The parties agree upon what comparisons and the universe need while the first steps wait for messages.
    found, _ = await beside(
        _mine(session, data, task, least_count, limits, two_party, pairs), _agreed(session, task, two_party, pairs)
    )
    return found


async def _agreed(
    session: Session, task: HorizontalMining, two_party: TwoParty | None, pairs: Mapping[str, TwoParty]
) -> None:
    """What is needed in any case; a union that comes later agrees upon the rest."""
    needed = [] if two_party is None else [two_party.prepare()]
    if task.hides_names:
        needed += [pair.prepare() for pair in pairs.values() if pair is not two_party]
    elif task.matches_in_pairs:
        needed.append(prepared(session, pairs))
    await together(needed)


async def _mine(
    session: Session,
    data: Rows,
    task: HorizontalMining,
    least_count: int,
    limits: ScratchLimits,
    two_party: TwoParty | None,
    pairs: Mapping[str, TwoParty],
) -> JointItemsets:
    secrets = await agree(session.lane("keys"))
    opened = VerifiedTally if task.is_verified else HorizontalTally
    tally = await opened.open(session, secrets, two_party, pairs, task, data.n_rows, least_count)
    items = await frequent_items(tally, data, limits)
    strategy = choose(task, items.data.n_items, len(session.parties), tally.min_count)
    longer: list[Level] | None = None
    if strategy == "one-shot" and task.allows(2):
        longer = await one_shot(tally, items)
    if longer is None:
        strategy = "level-wise"
        longer = await level_wise(tally, items)
    itemsets = _assemble(items, longer, tally)
    rules = None
    if task.rules is not None:
        itemsets = itemsets.canonical()
        counts = await session.compute(count_itemsets, items.data, [sets for sets, _ in itemsets.levels])
        rules = await decide_rules(tally, itemsets, counts, task.rules)
    if session.me not in task.learners:
        return JointItemsets(tally.n_rows, None, strategy)
    return JointItemsets(tally.n_rows, itemsets, strategy, rules)


def _assemble(items: FrequentItems, longer: list[Level], tally: HorizontalTally) -> Itemsets:
    """All frequent itemsets, with their supports where this party learns them."""
    singles = np.arange(items.data.n_items, dtype=np.int32)[:, None]
    levels = [(singles, items.supports), *longer]
    counted = all(counts is not None for _, counts in levels)
    filled = [(sets, np.zeros(len(sets), np.int64) if counts is None else counts) for sets, counts in levels]
    return Itemsets(items.data.items, [level for level in filled if len(level[0])], tally.n_rows, counted)
