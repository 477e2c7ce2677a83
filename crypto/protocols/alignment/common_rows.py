"""How an alignment ends: the merger opens what is common, and every party finds its own rows.

Of two parties it opens which places of the other's list hold what is common; of more, how many and which hashes are.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from link.errors import MalformedMessage, ProtocolViolation
from link.session import Session

KEY: Final = "[align] bound"  # of the job, which sets the bound
TWICE: Final = "the identifiers of rows that are aligned must be different"

N = TypeVar("N", bound=np.integer[Any])
Rows = NDArray[np.int64]
"""Numbers of a party's rows: places in the identifiers that it gave."""


async def open_common(lane: Session, label: str, ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> None:
    """The merger's part.

    Args:
        lane: The alignment's, of two parties.
        label: Under which places are opened.
        ours: Whether each row of the merger's is common.
        theirs: Whether each place of the other's list is.

    Raises:
        ProtocolViolation: These are not as many: the other's list holds something twice.
    """
    if ours.sum() != theirs.sum():
        raise no_intersection(lane)
    await lane.open(label, theirs.view(np.uint8))


async def receive_common(lane: Session, label: str, order: Rows, rows: int) -> Rows:
    """The other party's part: which of its rows are common.

    Args:
        lane: The alignment's, of two parties.
        label: As for `open_common`.
        order: For every place of its list the row that is there, a number beyond the rows where none is.
        rows: How many it has.

    Raises:
        MalformedMessage: The merger opened something else than zeros and ones.
        ProtocolViolation: It opened a place where no row is.
    """
    return own_rows(lane, order[await opened_places(lane, label, len(order))], rows)


async def opened_places(lane: Session, label: str, length: int) -> NDArray[np.bool_]:
    """Of each place of the other party's list whether it is common, as the merger has opened.

    Raises:
        MalformedMessage: It opened something else than zeros and ones.
    """
    (merger,) = lane.others
    bits = await lane.receive_opened(merger, label, np.uint8, (length,))
    if (bits > 1).any():
        raise MalformedMessage(
            f"{merger} opened something else than which rows are common; check that node", party=merger
        )
    return bits.view(np.bool_)


async def open_size(lane: Session, label: str, size: int, rows: int) -> None:
    """The merger's part: how many identifiers are common, at most as many as its rows.

    Raises:
        ProtocolViolation: They are more.
    """
    if size > rows:
        raise no_intersection(lane)
    await lane.open(label, np.array([size], np.uint64))


async def receive_size(lane: Session, merger: str, label: str, rows: int) -> int:
    """The other parties' part of `open_size`.

    Raises:
        ProtocolViolation: They are more than this party's rows.
    """
    (size,) = await lane.receive_opened(merger, label, np.uint64, (1,))
    if size > rows:
        raise no_intersection(lane)
    return int(size)


def strings(hashed: NDArray[Any]) -> NDArray[np.bytes_]:
    """Each of equally long rows as one value that can be compared and sorted; a zero at the end loses nothing.

    Args:
        hashed: Shape (n, …).
    """
    width = math.prod(hashed.shape[1:]) * hashed.itemsize
    return np.ascontiguousarray(hashed).reshape(-1).view(f"S{width}")


def own_rows(lane: Session, numbers: NDArray[N], rows: int) -> NDArray[N]:
    """The numbers, where all are of rows.

    Raises:
        ProtocolViolation: One is not: what fills up the list cannot be common.
    """
    if (numbers >= rows).any():
        raise no_intersection(lane)
    return numbers


def no_intersection(lane: Session) -> ProtocolViolation:
    """What came out cannot be; of two parties it names the other."""
    return ProtocolViolation(
        f"what came out of the alignment is not common to {lane.me}, so {' or '.join(lane.others)} sent a wrong list; "
        "check these nodes",
        party=lane.others[0] if len(lane.others) == 1 else None,
    )
