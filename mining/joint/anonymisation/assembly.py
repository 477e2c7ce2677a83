"""Bringing the released rows of all parties together, so that nobody sees whose row it is.

    1. every party generalises its rows and leaves out those in classes that are not released; what is left it pads with
       marked dummies up to a public bound
    2. all rows go through the shuffler to the collector (`mining.joint.hybrid.shuffle`), sealed for it
    3. the collector takes the dummies out, puts the rows in ascending order of bytes, and opens them to the learners
    4. every learner checks that its own rows are among them, as it sent them; and more (`release_check`)

With two parties each can distinguish the other's rows from its own.

Rounds:     3.
Output:     the released rows, to the learners.
Adversary:  semi-honest; whose row it is stays hidden unless the collector and the shuffler collude.
Leakage:    a public bound of every party's number of rows; the collector learns the rows.
Source:     Bittau et al., "Prochlo: Strong Privacy for Analytics in the Crowd", SOSP 2017, section 3.4.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from crypto.primitives.sealed import Rows
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.common_length import agree_on_length
from crypto.protocols.union.size_classes import LISTS
from link.errors import MalformedMessage, ProtocolViolation
from link.session import Session
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.release_check import check_contained
from mining.joint.anonymisation.row_form import Assembled, Form
from mining.joint.anonymisation.rows import ReleasedRows
from mining.joint.hybrid.openings import open_document, receive_document
from mining.joint.hybrid.pacing import CHUNK
from mining.joint.hybrid.shuffle import Phase, agree_on_route, collect_shuffled, send_reports, shuffle_first
from mining.joint.hybrid.spool_limits import SpoolLimits

ROWS: Final = replace(LISTS, most=1 << 27)  # of a party


class Hops(NamedTuple):
    """The way of the rows.

    Attributes:
        analyst: The collector.
        shufflers: The one shuffler.
        colluding: Nobody.
    """

    analyst: str
    shufflers: tuple[str, ...]
    colluding: int = 0


async def public_bound(session: Session, secrets: PairwiseSecrets, task: JointAnonymisation, n_rows: int) -> int:
    """How many rows each party has at most: the size class of the job's bound, or of the most rows of a party.

    Raises:
        ConfigurationError: Some party has more rows than the job's bound; nobody learns which.
    """
    return await agree_on_length(session, secrets, n_rows, task.bound, classes=ROWS)


async def assemble(
    session: Session,
    task: JointAnonymisation,
    own: ReleasedRows,
    bound: int,
    limits: SpoolLimits,
) -> Assembled | None:
    """Brings the released rows together.

    Args:
        session: A lane of its own.
        task: The public parameters.
        own: This party's released rows; in memory they are at learners alone.
        bound: How many rows each party has at most.
        limits: What the sealed rows may take at this party, where it shuffles.

    Returns:
        All released rows, to a learner; None to anybody else.

    Raises:
        ProtocolViolation: Rows got lost on their way, or rows of this learner were left out or changed.
        MalformedMessage: The collector opened something else than rows.
    """
    form = Form.of(task)
    route = await agree_on_route(session.lane("keys"), Hops(task.collector, (task.shuffler,)), limits)
    lane, phase = session.lane("rows"), Phase(0, dict.fromkeys(session.parties, bound), form.size, 1)
    held = await session.compute(own.all) if session.me in task.learners else None
    if session.me == task.collector:
        assert held is not None  # the collector is a learner
        kept = [held]

        async def take(rows: Rows) -> None:
            kept.append(rows[rows[:, 0] == 1])

        if await collect_shuffled(lane, route, phase, take):
            raise ProtocolViolation(
                "rows got lost between the parties, so that classes may be too small; check the versions of all nodes, "
                "and run the job again"
            )
        whole = form.sorted(np.concatenate(kept))
        await open_document(session.lane("release"), "release", whole.tobytes(), len(whole), task.learners)
    else:
        padded = _padded(session, own.pieces() if held is None else iter([held]), bound, form.size)
        if session.me == task.shuffler:
            await shuffle_first(lane, route, phase, padded)
        else:
            await send_reports(lane, route, phase, padded)
        if held is None:
            return None
        most = len(session.parties) * bound
        document = await receive_document(
            session.lane("release"), task.collector, "release", most_bytes=most * form.size, most=most
        )
        if len(document) % form.size:
            raise MalformedMessage(f"{task.collector} opened no rows; check that node", party=task.collector)
        whole = np.frombuffer(document, np.uint8).reshape(-1, form.size)
    try:
        assembled = form.unpack(whole, len(session.parties), shown=task.origin == "shown")
    except (ValueError, IndexError):
        raise MalformedMessage(
            f"{task.collector} opened rows that cannot be read; check that node", party=task.collector
        ) from None
    await session.compute(check_contained, task, held, whole)
    return assembled


async def _padded(session: Session, pieces: Iterator[Rows], bound: int, size: int) -> AsyncIterator[Rows]:
    """A party's rows, and behind them so many dummies that there are `bound` rows, piece by piece."""
    left = bound
    while (rows := await session.compute(next, pieces, None)) is not None:
        left -= len(rows)
        yield rows
    for start in range(0, left, CHUNK):
        yield np.zeros((min(CHUNK, left - start), size), np.uint8)
