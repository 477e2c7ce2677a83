"""What partners, and those who know a row's origin, must not see: conditions on the parties' parts of a class.

Insiders: up to m parties I put their rows together and take them off the release. Of every class the others have none
left then, or `insider_k` rows (m-privacy).
    1. each party i shares u_ic = min(n_ic, k) by itself
    2. for each coalition I the sum of the others' is rest_Ic, capped: [rest_Ic = 0] ∨ [rest_Ic ≥ k] is tested
A coalition that has a whole class leaves none of it, a smaller one too few perhaps: all sizes up to m are tested.
Sites: no party has fewer than `k_site` rows in a class, but it may have none.
    1. every party shares whether it has too few
    2. the computing parties test that nobody has

Source: Goryczka, Xiong and Fung, "m-Privacy for collaborative data publishing", IEEE TKDE 26(10), 2014, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.session import Session
from mining.joint.anonymisation.conditions.bits import none_or_enough, word_of
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
        largest = (len(session.parties) - 1) * task.insider_k
        capped = np.minimum(counts, task.insider_k)
        parts = np.concatenate([capped if i == session.me else np.zeros_like(capped) for i in session.parties])
        shared = await shared_sum(session.lane("parts"), secrets, parts.astype(word_of(largest)), task.compute)
        if parties is not None and shared is not None:
            rests = _rests(shared, task.coalitions(len(session.parties)), len(session.parties))
            fine = await none_or_enough(session.lane("insiders"), parties, rests, task.insider_k, largest)
            found += [fine[np.arange(start, start + len(counts))] for start in range(0, rests.size, len(counts))]
    if task.k_site is not None:
        few = ((counts > 0) & (counts < task.k_site)).astype(word_of(len(session.parties)))
        shared = await shared_sum(session.lane("sites"), secrets, few, task.compute)
        if parties is not None and shared is not None:
            some = await at_least(session.lane("few"), parties, shared, 1, width_for(len(session.parties)))
            found.append(~some)
    return found


def _rests(parts: AdditiveShare, coalitions: Sequence[tuple[int, ...]], parties: int) -> AdditiveShare:
    """Shares of what each coalition's others have in each class, coalition by coalition.

    Args:
        parts: Of what each party has in each class, party by party.
        coalitions: Places of their members.
        parties: How many there are.
    """
    by_party = parts.values.reshape(parties, -1)
    others = [[place for place in range(parties) if place not in members] for members in coalitions]
    rests = np.concatenate([by_party[places].sum(axis=0, dtype=parts.word) for places in others])
    return AdditiveShare(rests, parts.holder, parts.holders)
