"""Union by prefixes where parties may deviate: the ORs are computed among three, who check every step.

The steps are those of `prefix_union`. Only the ORs are found in another way (`verified_or`), those of the limits too.

Rounds: for each question, and for the limits, those of `verified_or`.
Output: the union in ascending order, to all parties.

Adversary: malicious with abort, one of the three together with any parties that are none. No element of an honest party
    is missing from a result: a bit more makes a word no word, never another one (`unordered_code`). A party that
    deviates chooses what it brings as it goes, when it has seen the beginnings of others' elements; it may bring what
    it does not hold, and make the union as large as the bound allows.
Collusion: any two of the three learn whose the elements are.
Leakage: whether some party is over a limit. What is opened follows from the honest parties' union, the public key, and
    what the others bring.

Source: that of `prefix_union`, and of `verified_sums`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.verified_costs import or_traffic
from crypto.protocols.replicated.verified_or import verified_or
from crypto.protocols.sums.masked_maximum import LABEL
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.limits import KEY
from crypto.protocols.union.prefix_costs import AskedBits
from crypto.protocols.union.prefix_union import Bits, Limits, united
from crypto.protocols.union.prefixes import LIMITS
from link.session import Session
from link.traffic import Traffic


async def verified_union(
    session: Session,
    secrets: PairwiseSecrets,
    holders: Holders3,
    elements: Collection[bytes],
    *,
    max_element_bytes: int,
    bound: int | None = None,
    label: str = "union",
    key: str = KEY,
) -> list[bytes]:
    """Learns the union of all parties' sets; every party of the job calls this.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        holders: The three computing parties, in the same order at all parties.
        elements: This party's set.
        max_element_bytes: As of `prefix_union`, like all that follow.
        bound: Likewise.
        label: Likewise.
        key: Likewise.

    Returns:
        The elements in ascending order of their bytes, equal at all parties.

    Raises:
        ConfigurationError: As of `prefix_union`.
        ProtocolViolation: A party deviates, or what came out is no union that contains this party's set.
        MalformedMessage: A party's message has another size.
    """

    async def over_somewhere(lane: Session, over: Limits) -> Limits:
        found = await verified_or(lane, secrets, np.array(over, np.uint8), holders, label=LABEL)
        return bool(found[0]), bool(found[1])

    async def ors(lane: Session, bits: Bits) -> Bits:
        return await verified_or(lane, secrets, bits, holders, label=label)

    return await united(
        session, elements, over_somewhere, ors, max_element_bytes=max_element_bytes, bound=bound, label=label, key=key
    )


def verified_union_traffic(traffic: Traffic, holders: Holders3, asked: AskedBits) -> None:
    """Enters `verified_union`."""
    for number in (len(LIMITS), *asked.questions):
        or_traffic(traffic, holders, number)
