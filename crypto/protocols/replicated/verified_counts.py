"""Counts of rows in which columns of several parties all have a one, among three of whom one may deviate.

    1  deal      every party deals its columns to the three, once, a plane each (`dealing`); what was dealt is compared
                 before anything is computed of it (`deal_columns`)
    2  count     column by column, products of what is shared, their counts, and whether these reach a threshold
                 (`count_circuits`); each of the three proves that its parts of all ANDs are right (`verified_ands`).
                 Products are shares as columns are: longer ones are made of them (`count`)

A bit is 0 or 1 whatever its dealer does, and what fills up the last byte is taken to be zeros.

Rounds: 2 for columns; one a step of the circuits, and 2. Bytes: `verified_count_costs`.

Output: replicated shares at the three, which are right and may be opened at any time after (`crosschecks`).
Adversary: malicious with abort, one of the three together with any parties that are none: the counts are those of the
    columns that were dealt, or an error, but with probability 2^-40 a call. The adversary chooses its own parties'
    columns before any count is known.
Collusion: any two of the three can read all columns.
Leakage: sizes.

Source: that of `verified_sums`; its inputs, checks and openings serve here for other circuits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.protocols.replicated.count_circuits import and_bytes, frequent
from crypto.protocols.replicated.dealing import compared, dealt, rest_of
from crypto.protocols.replicated.verified_ands import check, evaluated
from crypto.protocols.replicated.verified_sums import FEW
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session

AND_BYTES: Final = 4 << 20  # of ANDs at once; what a call keeps stays below 150 MB, unless one column takes more


@dataclass(frozen=True, slots=True, repr=False)
class Counted:
    """What the three hold of some products of columns.

    Attributes:
        products: One plane each.
        counts: Of each product, its width in planes.
        reached: One plane: whether each count reaches the threshold.
    """

    products: ReplicatedBits
    counts: ReplicatedBits
    reached: ReplicatedBits


async def deal_columns(
    session: Session, columns: Planes, numbers: Mapping[str, int], rows: int, holders: Holders3
) -> dict[str, ReplicatedBits] | None:
    """Deals this party's columns, and at a holder takes those of all; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        columns: Shape (columns, bytes), a bit for each row, the first one's lowest.
        numbers: By party in the order of the job, how many columns it has; public.
        rows: Of a column; public, one or more.
        holders: The three computing parties, in the same order at all parties.

    Returns:
        By party with columns a plane each; None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deals other columns to one of the three than to another.
        MalformedMessage: A party's message has another size.
    """
    octets = -(-rows // 8)
    planes = np.zeros((max(1, len(columns)), octets), np.uint8)  # a party without columns deals one of zeros
    planes[: len(columns)] = columns[:, :octets]
    widths = {party: max(1, number) for party, number in numbers.items()}
    shape = len(planes), planes.shape[1]
    of = await dealt(session.lane("deal"), shape, rest_of(planes), holders, widths, what="columns")
    if of is None:
        return None
    await compared(session.lane("compare"), of, holders)
    whole = np.full(octets, 0xFF, np.uint8)
    whole[-1] >>= -rows % 8
    return {
        party: share.within(whole) for (party, number), share in zip(numbers.items(), of.shares, strict=True) if number
    }


async def count(
    session: Session,
    secrets: PairwiseSecrets,
    holders: Holders3,
    columns: ReplicatedBits,
    others: ReplicatedBits | None,
    rows: int,
    threshold: int,
) -> Counted:
    """Multiplies columns and counts the products; the three holders call this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        holders: The three, in the same order at all of them.
        columns: One plane each, one or more: of `deal_columns`, or products of an earlier call.
        others: By which they are multiplied, plane by plane; None: the columns themselves are counted.
        rows: Of a column, public.
        threshold: From 1 to the number of rows, public.

    Raises:
        ProtocolViolation: A holder deviates.
        MalformedMessage: A holder's message has another size.
    """
    few = columns.width <= FEW
    circuit = frequent(columns, others, rows, threshold, few=few)
    size = sum(and_bytes(columns.width, rows, products=others is not None, few=few))
    done = await evaluated(session.lane("ands"), secrets, holders, [circuit], size)
    await check(session.lane("verify"), holders, done)
    return Counted(*done.outputs[0])


def at_once(rows: int) -> int:
    """How many columns are counted in a call, a multiple of eight."""
    return max(8, AND_BYTES // (2 * -(-rows // 8)) // 8 * 8)
