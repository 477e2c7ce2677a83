"""Frequent itemsets over horizontally partitioned transactions: every party holds whole rows of its own.

Rounds:     constant for the one-shot strategy; one secure sum per level for the level-wise one.
Output:     all itemsets whose support over all parties is at least c, exactly as if the rows were pooled.
Adversary:  semi-honest parties. Sums are private against any n − 2 colluders.
Leakage:    `disclosure.openings` lists all that is opened, `disclosure.learned` what follows from it.
Source:     Kantarcioglu & Clifton, Privacy-preserving distributed mining of association rules on horizontally
            partitioned data, IEEE TKDE 16(9), 2004; Agrawal & Srikant, Fast algorithms for mining association rules,
            VLDB 1994; local thresholds as in `mining.thresholds`.
"""

from __future__ import annotations

import numpy as np

from crypto.protocols.pairwise import agree
from link.session import Session
from mining.itemsets import Itemsets
from mining.joint.ballot import Ballot
from mining.joint.level_wise import Level, level_wise
from mining.joint.one_shot import one_shot
from mining.joint.parameters import HorizontalMining, JointItemsets
from mining.joint.strategy import choose
from mining.joint.universe import FrequentItems, frequent_items
from mining.transactions import Transactions


async def mine(session: Session, data: Transactions, task: HorizontalMining, least_count: int = 1) -> JointItemsets:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        data: This party's transactions; perhaps none.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for the least support of a frequent itemset.

    Raises:
        ConfigurationError: min_support does not fit the number of transactions, or there are too many candidates.
        InputDataError: No party has any transaction, or an item is not in the public catalogue.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: What was opened cannot be sums of counts.
    """
    secrets = await agree(session.lane("keys"))
    ballot = await Ballot.convene(session, secrets, task, data.n_rows, least_count)
    items = await frequent_items(ballot, data)
    strategy = choose(task, items.data.n_items, len(session.parties), ballot.min_count)
    longer: list[Level] | None = None
    if strategy == "one-shot" and task.allows(2):
        longer = await one_shot(ballot, items)
    if longer is None:
        strategy = "level-wise"
        longer = await level_wise(ballot, items)
    return JointItemsets(ballot.n_rows, _assemble(items, longer, ballot.n_rows), strategy)


def _assemble(items: FrequentItems, longer: list[Level], n_rows: int) -> Itemsets | None:
    if items.supports is None:
        return None
    singles = np.arange(items.data.n_items, dtype=np.int32)[:, None]
    levels = [(singles, items.supports), *((sets, counts) for sets, counts in longer if counts is not None)]
    return Itemsets(items.data.items, [level for level in levels if len(level[0])], n_rows)
