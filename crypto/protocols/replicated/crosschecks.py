"""What two holders of one component say of it when it is opened, so that one that deviates is noticed.

Every component of a replicated share lies at two of the three holders, so whoever lacks it hears of it from two, and
one of them is honest: a wrong value ends the job before it is used. Which of the two was wrong the receiver cannot
know; it names both. Nothing is ever opened by summing up what holders send without this comparison: a check that did
so would itself be open to whom it is to catch.

Rounds: 1. Bytes: to each receiver two or, if it holds none, six components.
Adversary: malicious, one of the three holders, together with any parties that are none: what is opened is what the
    honest holders' shares say, or the honest receiver ends the job.
Leakage: what is opened.

Source: Furukawa, Lindell, Nof and Weinstein, "High-Throughput Secure Three-Party Computation for Malicious Adversaries
and an Honest Majority", EUROCRYPT 2017, section 2.3 (opening and comparing views).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from link.errors import ProtocolViolation
from link.session import Session

DIGEST_BYTES: Final = 32


def neighbours(session: Session, holders: Holders3) -> tuple[str, str]:
    """The holder before this one, who has its own component too, and the one after it, who has the following one."""
    number = holders.index(session.me)
    return holders[number - 1], holders[(number + 1) % 3]


def digest(planes: Planes) -> bytes:
    """SHA-256 of a component's bytes."""
    return hashlib.sha256(np.ascontiguousarray(planes).data).digest()


def contradiction(one: str, other: str, what: str) -> ProtocolViolation:
    """Two parties say different things of what both know."""
    return ProtocolViolation(f"{one} and {other} contradict each other on {what}; one of these two nodes deviates")


async def opened(
    session: Session,
    share: ReplicatedBits | None,
    *,
    label: str,
    holders: Holders3,
    number: int,
    width: int,
    to: Sequence[str],
) -> Planes | None:
    """Opens words under a label of the statement; holders and receivers call this.

    Args:
        session: The lane to use, fresh for this call.
        share: This party's share of `number` words; None where it holds none.
        label: A label of the job's statement, for at least `number` values per receiver.
        holders: The three holders.
        number: How many words; public.
        width: Bits of a word; public.
        to: The receivers.

    Returns:
        Planes, shape (width, ⌈number / 8⌉); None to a party that is no receiver.

    Raises:
        UndeclaredDisclosure: The statement does not name the label, a receiver or enough values; nothing has left.
        ProtocolViolation: Two holders of a component contradict each other.
        MalformedMessage: A holder opens something of another size.
    """
    held, like = None, np.empty((width, -(-number // 8)), np.uint8)
    if share is not None:
        held = _cleared(share.own, number), _cleared(share.following, number)
    parts = await components(session, held, like, label=label, holders=holders, number=number, to=to)
    if parts is None:
        return None
    found: Planes = parts[0] ^ parts[1] ^ parts[2]
    return found


async def components(
    session: Session,
    held: tuple[NDArray[Any], NDArray[Any]] | None,
    like: NDArray[Any],
    *,
    label: str,
    holders: Holders3,
    number: int,
    to: Sequence[str],
) -> dict[int, NDArray[Any]] | None:
    """The three components of what is opened; arguments and errors as of `opened`.

    Args:
        session: The lane to use, fresh for this call.
        held: A holder's own component and the following one.
        like: An array of a component's type and shape.
        label: A label of the job's statement.
        holders: The three holders.
        number: How many values these are.
        to: The receivers.

    Returns:
        By number of the component; None to a party that is no receiver.
    """
    outsiders = [name for name in to if name not in holders]
    found: dict[int, NDArray[Any]] = {}
    if held is not None:
        own, following = held
        before, after = neighbours(session, holders)
        place = holders.index(session.me)
        found = {place: own, (place + 1) % 3: following}
        for values, receivers in ((own, [after]), (following, [before]), (np.stack([own, following]), outsiders)):
            await session.open(label, values, [name for name in receivers if name in to], number=number)
    if session.me not in to:
        return None
    for place, holder in enumerate(holders):
        if holder == session.me:
            continue
        if held is None:
            both = await session.receive_opened(holder, label, like.dtype, (2, *like.shape), number=number)
            told = {place: both[0], (place + 1) % 3: both[1]}
        else:  # either has the one component that this holder lacks
            values = await session.receive_opened(holder, label, like.dtype, like.shape, number=number)
            told = {(holders.index(session.me) - 1) % 3: values}
        for component, values in told.items():
            known = found.setdefault(component, values)
            if not np.array_equal(known, values):
                raise contradiction(holders[component - 1], holders[component], "what is opened")
    return found


def _cleared(planes: Planes, number: int) -> Planes:
    """With zeros where the last byte holds no word."""
    cleared = planes.copy()
    if number % 8:
        cleared[:, -1] &= np.uint8((1 << number % 8) - 1)
    return cleared
