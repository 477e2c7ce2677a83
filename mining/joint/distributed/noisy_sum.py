"""A sum of all parties' counts that nobody sees without noise.

    1  each party adds its share of the noise to its own counts, in 64-bit words with a sign
    2  the masked words are summed, and the sum is opened to all parties                                  secure sum

Rounds:     those of the secure sum: 1, or 2 for long vectors.
Output:     the noisy sums, to all.
Adversary:  semi-honest parties. Against t colluders who see the sum, the noise of the other n − t is left.
Collusion:  up to n − 2 parties learn from the masked words nothing but the noisy sum over the others.
Drop-outs:  masks of pairs need all n parties, so a party that is lost ends the job before anybody has the sum: a sum
            without the noise of n − t parties that do not collude is never opened.
Source:     Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure
            Aggregation", ICML 2021, algorithm 1, without clipping and rotation: counts are whole already.
"""

from __future__ import annotations

import numpy as np

from crypto.primitives.randomness import Randomness
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import secure_sum
from link.session import Session
from mining.joint.distributed.budget import SumNoise
from mining.joint.tally import MAX_ROWS, Counts, no_sum


async def noisy_sum(
    session: Session, secrets: PairwiseSecrets, counts: Counts, noise: SumNoise, label: str, random: Randomness
) -> Counts:
    """Opens the sums of all parties' counts and noise.

    Args:
        session: A lane of its own.
        secrets: Of this session.
        counts: Shape (m,), this party's, after truncation; m is public.
        noise: What each party adds.
        label: A label of the job's statement.
        random: What this party's noise is drawn from.

    Returns:
        Shape (m,); an entry may be negative.

    Raises:
        ProtocolViolation: A sum is none that counts and noise can have.
        MalformedMessage: A peer's vector has another length.
    """
    share = await session.compute(noise.share, len(counts), random)
    opened = await secure_sum(session, secrets, (counts + share).view(np.uint64), label=label)
    if opened is None:
        raise AssertionError("noisy sums are opened to all")
    total = opened.view(np.int64)
    if (total > MAX_ROWS).any() or (total < -MAX_ROWS).any():
        raise no_sum(session)
    return total
