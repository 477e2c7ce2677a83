"""One length for the lists of all parties: the size class of a public bound, or of the longest, a masked maximum.

Where each list had a length of its own, the one longer list would reveal who has more; so all have the same, and that
some party is over the bound is reported to all alike, and not whose list it is.

Rounds, adversary, collusion: those of `masked_maximum`; where parties may deviate three of them find the maximum, in
    unary, as ORs, and they are those of `verified_or`. Leakage: `leakage`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.verified_or import verified_or
from crypto.protocols.sums import masked_maximum
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.size_classes import LISTS, SizeClasses, over_bound
from link.disclosure import Declared, Learned
from link.errors import ConfigurationError, OverLimit, shareable
from link.session import Session


async def agree_on_length(
    session: Session,
    secrets: PairwiseSecrets,
    number: int,
    bound: int | None,
    *,
    classes: SizeClasses = LISTS,
    key: str = "[union] bound",
    three: Holders3 | None = None,
) -> int:
    """The length of all parties' lists: the size class of the bound, or of the longest of them.

    Args:
        session: A lane of its own.
        secrets: From `pairwise.agree` in this session.
        number: This party's elements.
        bound: The job's bound.
        classes: That lists may be of.
        key: The job's key that sets the bound, for people.
        three: Who check, where parties may deviate.

    Raises:
        ConfigurationError: The bound allows none.
        OverLimit: Some party's elements are more than allowed, whose is not revealed.
    """
    if bound is not None and not 1 <= bound <= classes.most:
        raise shareable(ConfigurationError(f"the bound of a list must lie between 1 and {classes.most}, not {bound}"))
    own = classes.of(number, bound)
    if three is None:
        (largest,) = await masked_maximum.masked_maximum(session, secrets, [own], [classes.beyond])
    else:
        unary = (np.arange(classes.beyond) < own).view(np.uint8)
        reached = await verified_or(session, secrets, unary, three, label=masked_maximum.LABEL)
        largest = int(np.max(np.flatnonzero(reached) + 1, initial=0))
    if largest == classes.beyond:
        allowed = over_bound(classes, bound, key)
        raise shareable(OverLimit(f"some party, and nobody learns which, has more rows or items than {allowed}"))
    return classes.capacity(largest, bound)


def declared(parties: Sequence[str], *, lists: int) -> Declared:
    """The statement's line for the masked maxima of a job, of which there is but one.

    Args:
        parties: All parties of the job.
        lists: How often it may agree on a length at the most.
    """
    return masked_maximum.declared(parties, lists * LISTS.beyond)


def leakage(parties: Sequence[str], what: str, bound: int | None = None) -> Learned:
    """Who learns what from the length of the lists.

    Args:
        parties: All parties of the job.
        what: Their elements, for people.
        bound: As given to `agree_on_length`.
    """
    two = len(parties) == 2
    if bound is not None:
        whose = "the other has" if two else "some other party, not which one, has"
        return Learned(tuple(parties), "size", f"whether {whose} more than {LISTS.rounded(bound)} {what}")
    whose = "the other" if two else "the largest of the other parties, and not which one that is,"
    detail = f"the least of 64, 80, 96, 112, 128, 160, … (four to each power of two) that holds the {what} of {whose}"
    short = "the other" if two else "the largest of the other parties"
    return Learned(tuple(parties), "size", f"how many {what} {short} has, to within a quarter", detail.rstrip(","))
