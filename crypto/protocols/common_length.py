"""One length for the lists of all parties: a public bound, or the size class of the longest, which is a masked maximum.

Where each list had a length of its own, the one longer list would tell who has the more; so all have the same, and that
some party is over the bound is told to all alike, and not whose list it is.

Size class r = 4j + q holds (4 + q)·2^j elements: four classes to each power of two, from 64 up, since a smaller class
would tell of few elements too much.

Rounds, adversary, collusion: those of `masked_maximum`. Leakage: `leakage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.params import STANDARD_128
from crypto.protocols.masked_maximum import masked_maximum
from crypto.protocols.pairwise import PairwiseSecrets
from link.disclosure import Learned
from link.errors import ConfigurationError, OverLimit, tellable
from link.session import Session

MAX_ELEMENTS: Final = STANDARD_128.max_elements  # of one party's list: 512 MiB of points
LEAST_RUNG: Final = 16  # lists of up to 64 elements are of one size class


async def agree_on_length(
    session: Session,
    secrets: PairwiseSecrets,
    number: int,
    bound: int | None,
    *,
    most: int = MAX_ELEMENTS,
    key: str = "[union] bound",
) -> int:
    """The length of all parties' lists: the bound, or the size class of the longest of them.

    Args:
        session: A lane of its own.
        secrets: From `pairwise.agree` in this session.
        number: This party's elements.
        bound: The job's bound.
        most: The most elements that a list may hold, a size class.
        key: The job's key that sets the bound, for people.

    Raises:
        ConfigurationError: The bound allows none.
        OverLimit: Some party's elements are more than allowed, whose is not told.
    """
    if bound is not None and not 1 <= bound <= most:
        raise tellable(ConfigurationError(f"the bound of a list must lie between 1 and {most}, not {bound}"))
    over = words(most)
    place = 0 if bound is not None else rung(number) - LEAST_RUNG
    own = over if number > (bound or most) else place
    (largest,) = await masked_maximum(session, secrets, [own], [over])
    if largest == over:
        allowed = f"{most}, the most that there may be" if bound is None else f"{bound}; raise {key} in the job"
        raise tellable(OverLimit(f"some party, and nobody learns which, has more rows or items than {allowed}"))
    return capacity(LEAST_RUNG + largest) if bound is None else bound


def words(most: int = MAX_ELEMENTS) -> int:
    """The words of the maximum, and what stands for a list that is too long."""
    return rung(most) - LEAST_RUNG + 1


def rung(size: int) -> int:
    """The least r whose size class holds so many elements; few are all of one class."""
    found = max(LEAST_RUNG, 4 * (max(size, 4).bit_length() - 3))
    while capacity(found) < size:
        found += 1
    return found


def capacity(rung: int) -> int:
    """The most elements of size class r = 4j + q, which is (4 + q)·2^j."""
    return (4 + rung % 4) << rung // 4


def leakage(parties: Sequence[str], what: str, bound: int | None = None) -> Learned:
    """Who learns what from the length of the lists.

    Args:
        parties: All parties of the job.
        what: Their elements, for people.
        bound: As given to `agree_on_length`.
    """
    two = len(parties) == 2
    if bound is not None:
        whose = "the other has" if two else "some other party (not which one) has"
        return Learned(tuple(parties), "size", f"whether {whose} more than {bound} {what}")
    whose = "the other" if two else "the largest of the other parties, and not which one that is,"
    told = f"the least of 64, 80, 96, 112, 128, 160, … (four to each power of two) that holds the {what} of {whose}"
    return Learned(tuple(parties), "size", told.rstrip(","))
