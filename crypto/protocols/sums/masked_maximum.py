"""Masked maximum: the largest of all parties' small numbers, and not whose it is.

A number t from 0 to T is written in T words: the first t are uniform and not 0, the others are 0. The secure sum of all
parties' words is 0 in a place where nobody's number reaches it, and random elsewhere; so the places that are not 0 are
as many as the largest number says. Several numbers go side by side, and each has its own largest one.

Rounds: 1, after `pairwise.agree`. Output: the maxima, to all parties.

Adversary: semi-honest. Collusion: up to n − 2 parties learn the maximum over the others, never a number of one of them;
    n − 1 parties learn the number of the last.
Leakage: a party takes its own words off the sum, and so learns the maximum over all *other* parties, also where that is
    less than its own number; with two parties that is the other's number. How many parties reach a place is not
    revealed: a sum of uniform words other than 0 is uniform but for 2^-64.
Wrong with probability below 2^-63 for each place that several parties reach: their words may add up to 0.

Source: Brandt, "Fully Private Auctions in a Constant Number of Rounds", Financial Cryptography 2003: unary numbers, and
random factors that leave of a sum only whether it is 0; here on the sum of `secure_sum` instead of ElGamal ciphertexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import secure_sum
from link.disclosure import Declared
from link.errors import ProtocolViolation
from link.session import Session

LABEL: Final = "size classes"
WORD_BYTES: Final = 8


async def masked_maximum(
    session: Session, secrets: PairwiseSecrets, own: Sequence[int], most: Sequence[int], *, label: str = LABEL
) -> tuple[int, ...]:
    """Opens the largest of all parties' numbers, place by place.

    Every party calls this with the same `most`.

    Args:
        session: A lane of its own.
        secrets: From `pairwise.agree` in this session.
        own: This party's numbers, each from 0 to the one of `most`.
        most: The largest that each may be, public.
        label: A label of the job's statement, for as many values as `most` adds up to.

    Raises:
        ProtocolViolation: What came out are no numbers in unary.
    """
    random = session.randomness("masked maximum")
    words = np.zeros(sum(most), np.uint64)
    starts = [0, *accumulate(most)]
    for start, number, largest in zip(starts, own, most, strict=False):
        if not 0 <= number <= largest:
            raise ValueError(f"a number whose maximum is taken must lie between 0 and {largest}")
        words[start : start + number] = [1 + random.below((1 << 8 * WORD_BYTES) - 1) for _ in range(number)]
    total = await secure_sum(session, secrets, words, label=label)
    if total is None:
        raise AssertionError("the maxima are opened to all")
    reached = [total[start : start + largest] != 0 for start, largest in zip(starts, most, strict=False)]
    found = tuple(int(np.count_nonzero(places)) for places in reached)
    if any(not p[:largest].all() or largest < mine for p, largest, mine in zip(reached, found, own, strict=True)):
        raise ProtocolViolation(
            f"what the parties opened as '{label}' is no maximum, so a node is faulty or has another version; "
            "check all nodes",
            party=session.others[0] if len(session.others) == 1 else None,
        )
    return found


def declared(parties: Sequence[str], words: int) -> Declared:
    """The statement's line for all maxima of a job.

    Args:
        parties: All parties of the job.
        words: How many words all calls take together, at the most.
    """
    whose = "the other's" if len(parties) == 2 else "to each party, the largest of the others'"
    what = f"the largest size class of all parties' sets and lists, and whether one is over its limit ({whose})"
    return Declared(LABEL, frozenset(parties), what, words, "before each union or list")
