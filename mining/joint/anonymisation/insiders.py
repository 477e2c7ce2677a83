"""What partners and whoever knows a row's origin must not see: conditions on the parties' parts of a class.

Insiders: a party takes its own rows off the release. Of every class the others have none left then, or `insider_k`.
    1. for each party i every other one shares min(n_jc, k): the sum is rest_ic, capped
    2. the computing parties test [rest_ic = 0] ∨ [rest_ic ≥ k]
Sites: no party has fewer than `k_site` rows in a class, but it may have none.
    1. every party shares whether it has too few
    2. the computing parties test that nobody has

Source: Goryczka, Xiong and Fung, "m-Privacy for collaborative data publishing", IEEE TKDE 26(10), 2014, section 2.
"""

from __future__ import annotations

import numpy as np

from crypto.primitives.xor_sharing import XorShare
from crypto.protocols.comparison import at_least, width_for
from crypto.protocols.pairwise import PairwiseSecrets
from crypto.protocols.secure_sum import shared_sum
from crypto.protocols.two_party import TwoParty
from link.session import Session
from mining.joint.anonymisation.bits import none_or_enough, word_of
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells


async def insider_bits(
    session: Session, secrets: PairwiseSecrets, parties: TwoParty | None, task: JointAnonymisation, counts: Cells
) -> list[XorShare]:
    """Shares of the conditions on the parties' parts of each class; none at a party that computes nothing.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        parties: At a computing party its half of the agreement with the other.
        task: The public parameters.
        counts: This party's rows in each class, shape (m,).
    """
    found = []
    if task.insider_k > 1:
        largest = max((len(session.parties) - 1) * task.insider_k, 1)
        capped = np.minimum(counts, task.insider_k)
        rests = np.concatenate([np.zeros_like(capped) if i == session.me else capped for i in session.parties])
        shared = await shared_sum(session.lane("rests"), secrets, rests.astype(word_of(largest)), task.compute)
        if parties is not None and shared is not None:
            fine = await none_or_enough(session.lane("insiders"), parties, shared, task.insider_k, largest)
            found += [fine[np.arange(start, start + len(counts))] for start in range(0, len(rests), len(counts))]
    if task.k_site is not None:
        few = ((counts > 0) & (counts < task.k_site)).astype(word_of(len(session.parties)))
        shared = await shared_sum(session.lane("sites"), secrets, few, task.compute)
        if parties is not None and shared is not None:
            some = await at_least(session.lane("few"), parties, shared, 1, width_for(len(session.parties)))
            found.append(~some)
    return found
