"""All that is asked of a class, as one shared bit: its size, the parties' parts of it, and its sensitive values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.session import Session
from mining.joint.anonymisation.conditions.bits import all_of, word_of
from mining.joint.anonymisation.conditions.insiders import insider_bits
from mining.joint.anonymisation.conditions.models import SensitiveTests
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells


async def condition_bits(
    session: Session,
    secrets: PairwiseSecrets,
    parties: TwoParty | None,
    task: JointAnonymisation,
    tests: SensitiveTests,
    counts: Cells,
    histogram: Callable[[str], NDArray[np.int64]],
) -> XorShare | None:
    """Shares of which classes meet all requirements; None at a party that computes nothing.

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        parties: At a computing party its half of the agreement with the other.
        task: The public parameters.
        tests: Of sensitive values.
        counts: This party's rows in each class, shape (m,).
        histogram: By column, this party's rows in each class with each value, shape (m, values).
    """
    found = list[XorShare]()
    largest = len(session.parties) * task.k
    capped = np.minimum(counts, task.k).astype(word_of(largest))
    shared = await shared_sum(session.lane("sizes"), secrets, capped, task.compute)
    if parties is not None and shared is not None:
        found.append(await at_least(session.lane("k"), parties, shared, task.k, width_for(largest)))
    found += await insider_bits(session.lane("insiders"), secrets, parties, task, counts)
    for number, model in enumerate(tests.models):
        own = await session.compute(histogram, model.column)
        bits = await tests.bits(session.lane(f"model {number}"), secrets, parties, model, own)
        found += [] if bits is None else [bits]
    return await all_of(session.lane("all"), parties, found) if parties is not None else None
