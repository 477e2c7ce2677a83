"""Shuffled reports of one phase: the analyst gets them all, and nobody knows whose is whose.

    1  the analyst, and every shuffler but the first, has sent all parties a public key of this session       keys
    2  every party but the analyst seals each report for the analyst, and around that for each shuffler but
       the first, the last one innermost, and sends them to the first shuffler                                reports
    3  the first shuffler waits for all parties; it drops what has a wrong size, is beyond what its sender
       announced, or was there before; puts the rest in secret uniform order and sends it on, with its counts
    4  each further shuffler holds the counts against what came, takes its layer off, drops what it cannot read
       or was there before, and does as the one before it; the last one opens the reports to the analyst      open
    5  the analyst takes off the innermost layer

No party needs memory for all reports. Senders wait for their receivers (`pacing`), shufflers keep on the disk what does
not fit memory (`spool`), and the analyst adds reports up as they come.

The first shuffler needs no layer: each party's session with it is sealed to it already. Each layer is HPKE
(`crypto.primitives.sealed`) under a context that names session, phase and hop; keys are drawn for the session.

Rounds:     one, and one for each shuffler.
Output:     the multiset of the other parties' reports, to the analyst, in an order that says nothing.
Adversary:  semi-honest. What a party sends too much, twice or broken is dropped and counted; where so much is lost that
            fewer are left to hide among than was assumed, the first shuffler, who sees it first, ends the job.
Collusion:  whose report is whose stays hidden while one shuffler colludes with nobody. The analyst and all shufflers
            together see each party's reports, as in the local model. n counts no reports of colluders.
Leakage:    numbers of reports by party, which are public anyway, to the first shuffler; counts of what was dropped to
            all further hops.
Source:     Bittau et al., "Prochlo: Strong Privacy for Analytics in the Crowd", SOSP 2017; Erlingsson et al.,
            "Amplification by Shuffling: From Local to Central Differential Privacy via Anonymity", SODA 2019.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from crypto.primitives.hashing import encode_labels
from crypto.primitives.scratch_file import SECRET_BYTES
from crypto.primitives.sealed import KEY_BYTES, OVERHEAD, Rows, new_private_key, open_rows, public_key_of, seal_rows
from ldp.shuffling.batch import TAG_KEY_BYTES
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together
from mining.joint.hybrid.budget import hidden
from mining.joint.hybrid.pacing import CHUNK, Pace, paced
from mining.joint.hybrid.parameters import Hops
from mining.joint.hybrid.spool import Kept, Spool
from mining.joint.hybrid.spool_limits import DEFAULT_SPOOL_LIMITS, SpoolLimits
from protos.v1.hybrid_pb2 import ReportKey, SealedRows, ShuffledChain, ShuffledCounts

LABEL: Final = "reports"
DROPPED: Final = ("wrong_size", "over_share", "replayed", "unreadable")


@dataclass(frozen=True)
class Route:
    """The way of reports in one session, as one party sees it.

    Attributes:
        task: Names analyst and shufflers.
        keys: Public keys of those that take a layer off.
        own: This party's private key, where it is one of them.
        spool_limits: What reports may take at this party, where it shuffles.
    """

    task: Hops
    keys: Mapping[str, bytes]
    own: bytes | None
    spool_limits: SpoolLimits = DEFAULT_SPOOL_LIMITS

    @property
    def openers(self) -> tuple[str, ...]:
        """Who takes a layer off, the outermost first."""
        return (*self.task.shufflers[1:], self.task.analyst)

    def size(self, plain: int, hop: int) -> int:
        """Bytes of a report of `plain` bytes as it comes to the shuffler number `hop`, from 0."""
        return plain + OVERHEAD * (len(self.openers) - max(hop - 1, 0))


class Phase(NamedTuple):
    """What all parties know of a phase.

    Attributes:
        number: From 0 on.
        groups: How many reports each party has announced.
        plain: Bytes of a report.
        n: Reports behind which each one hides, at least: what was assumed.
    """

    number: int
    groups: Mapping[str, int]
    plain: int
    n: int


async def agree_on_route(session: Session, task: Hops, limits: SpoolLimits = DEFAULT_SPOOL_LIMITS) -> Route:
    """Step 1: fresh keys of all that take layers off."""
    openers = (*task.shufflers[1:], task.analyst)
    own, keys = None, dict[str, bytes]()
    if session.me in openers:
        own = new_private_key(session.randomness("layer key"))
        keys[session.me] = public_key_of(own)
        await session.broadcast(ReportKey(public_key=keys[session.me]))
    for party in openers:
        if party != session.me:
            keys[party] = (await session.recv(party, ReportKey, _check_key)).public_key
    return Route(task, keys, own, limits)


async def send_reports(session: Session, route: Route, phase: Phase, reports: Rows | AsyncIterable[Rows]) -> None:
    """Step 2, at a party that is neither analyst nor first shuffler.

    Args:
        session: The phase's lane.
        route: The way.
        phase: The phase.
        reports: This party's, shape (`phase.groups[me]`, `phase.plain`), or pieces of these.
    """
    to = route.task.shufflers[0]
    async for chunk in paced(session, to, _in_chunks(reports), route.size(phase.plain, 0)):
        sealed = await sealed_rows(session, route, phase, chunk)
        await session.send(to, SealedRows(data=sealed.tobytes()))


async def shuffle_first(session: Session, route: Route, phase: Phase, reports: Rows | AsyncIterable[Rows]) -> None:
    """Steps 2 and 3, at the first shuffler, with its own reports; arguments as of `send_reports`.

    Raises:
        ProtocolViolation: Too few reports are left to hide among.
        ResourceError: The disk has no room for them.
    """
    size, counts, adding, done = route.size(phase.plain, 0), ShuffledCounts(), asyncio.Lock(), 0
    senders = (session.me, *(party for party in session.parties if party not in (session.me, route.task.analyst)))
    spool = _spool(session, route, size, sum(phase.groups[party] for party in senders))

    async def add(number: int) -> None:
        nonlocal done
        party = senders[number]
        if number:
            pieces = _share(session, party, phase.groups[party], size, counts)
        else:
            pieces = _sealed(session, route, phase, reports, counts)
        async for rows in pieces:
            async with adding:
                await session.compute(spool.add, number, rows)
        done += 1
        session.progress("shuffling reports", done, len(senders))

    try:
        # All at once: what waited to be read would hold up its sender.
        await together(map(add, range(len(senders))))
        kept = await session.compute(spool.kept, len(senders))
        left = dict(zip(senders, kept.by_sender, strict=True))
        if hidden([*left.values(), phase.groups[route.task.analyst]], route.task) < phase.n:
            short = next(party for party in senders[1:] if left[party] < phase.groups[party])
            raise ProtocolViolation(
                f"{short} sent fewer reports that can be used than it had announced, so that too few are left to hide "
                "among; check that node, and run the job again",
                party=short,
            )
        await hand_on(session, route, 0, spool, kept, [], counts)
    finally:
        spool.close()


async def shuffle_next(session: Session, route: Route, phase: Phase) -> None:
    """Step 4, at a shuffler that is not the first.

    Raises:
        ProtocolViolation: The counts do not agree with each other or with what came, or too few reports are left to
            hide among.
        ResourceError: The disk has no room for them.
    """
    hop = route.task.shufflers.index(session.me)
    chain = await _take_chain(session, route, phase, hop)
    forwarded, size = chain[-1].forwarded, route.size(phase.plain, hop)
    counts = ShuffledCounts(received=forwarded, unreadable=forwarded)
    spool = _spool(session, route, size - OVERHEAD, forwarded)
    try:
        came = _handed_on(session, route.task.shufflers[hop - 1], forwarded, size)
        async for opened in _opened(session, route, phase, hop - 1, came):
            counts.unreadable -= len(opened)
            await session.compute(spool.add, 0, opened)
        kept = await session.compute(spool.kept, 1)
        # Whose were dropped is not seen here: those of the largest parties may all be left. A report hides itself.
        largest = sorted(phase.groups.values())[-route.task.colluding - 1 :]
        if max(1, sum(kept.by_sender) + phase.groups[route.task.analyst] - sum(largest)) < phase.n:
            raise ProtocolViolation(
                "so many reports came repeated or broken that too few are left to hide among; check the versions of "
                "all nodes, and run the job again"
            )
        await hand_on(session, route, hop, spool, kept, chain, counts)
    finally:
        spool.close()


async def collect_shuffled(
    session: Session, route: Route, phase: Phase, take: Callable[[Rows], Awaitable[None]]
) -> int:
    """Step 5, at the analyst.

    Args:
        session: The phase's lane.
        route: The way.
        phase: The phase.
        take: Gets the other parties' reports, shape (n, `phase.plain`), piece by piece.

    Returns:
        How many reports got lost on the way.

    Raises:
        ProtocolViolation: The counts do not agree with each other or with what came.
    """
    hops, last = len(route.task.shufflers), route.task.shufflers[-1]
    chain = await _take_chain(session, route, phase, hops)
    forwarded, size = chain[-1].forwarded, route.size(phase.plain, hops)
    lost = sum(number for party, number in phase.groups.items() if party != session.me)
    rows = Pace(session, last, forwarded, size).each(session.receive_opened_pieces(last, LABEL, forwarded, size))
    async for opened in _opened(session, route, phase, hops - 1, _in_chunks(rows)):
        lost -= len(opened)
        await take(opened)
    return lost


# -- what shufflers share ---------------------------------------------------------------------------------------------
def _spool(session: Session, route: Route, size: int, expected: int) -> Spool:
    key, secret = session.randomness("tags").bytes(TAG_KEY_BYTES), session.randomness("spool").bytes(SECRET_BYTES)
    return Spool(route.spool_limits, size, expected, key, secret)


async def _sealed(
    session: Session, route: Route, phase: Phase, reports: Rows | AsyncIterable[Rows], counts: ShuffledCounts
) -> AsyncIterator[Rows]:
    """The first shuffler's own reports."""
    async for chunk in _in_chunks(reports):
        counts.received += len(chunk)
        yield await sealed_rows(session, route, phase, chunk)


async def _share(
    session: Session, party: str, announced: int, size: int, counts: ShuffledCounts
) -> AsyncIterator[Rows]:
    """A party's reports, no more than it has announced."""
    left, pace = announced, Pace(session, party, announced, size)
    for start in range(0, announced, CHUNK):
        data = (await session.recv(party, SealedRows)).data
        whole, broken = divmod(len(data), size)
        taken = min(whole, left)
        left -= taken
        counts.received += whole + (broken > 0)
        counts.wrong_size += broken > 0
        counts.over_share += whole - taken
        yield np.frombuffer(data, np.uint8, taken * size).reshape(-1, size)
        await pace.took(min(CHUNK, announced - start))


async def _handed_on(session: Session, before: str, forwarded: int, size: int) -> AsyncIterator[Rows]:
    """What the shuffler before hands on."""
    pace = Pace(session, before, forwarded, size)
    for start in range(0, forwarded, CHUNK):
        number = min(CHUNK, forwarded - start)
        message = await session.recv(before, SealedRows, lambda each, n=number * size: _check_size(each, n))  # type: ignore[misc]
        yield np.frombuffer(message.data, np.uint8).reshape(-1, size)
        await pace.took(number)


async def hand_on(
    session: Session,
    route: Route,
    hop: int,
    spool: Spool,
    kept: Kept,
    chain: Sequence[ShuffledCounts],
    counts: ShuffledCounts,
) -> None:
    """In secret order to the next shuffler, or to the analyst."""
    counts.replayed, counts.forwarded = kept.replayed, sum(kept.by_sender)
    shufflers = route.task.shufflers
    to = shufflers[hop + 1] if hop + 1 < len(shufflers) else route.task.analyst
    await session.send(to, ShuffledChain(hops=[*chain, counts]))
    pieces = paced(session, to, _in_order(session, spool), spool.size)
    if to == route.task.analyst:
        await session.open_pieces(LABEL, pieces, counts.forwarded, to)
        return
    async for chunk in _in_chunks(pieces):
        await session.send(to, SealedRows(data=chunk.tobytes()))


async def _in_order(session: Session, spool: Spool) -> AsyncIterator[Rows]:
    pieces = spool.in_secret_order(session.randomness("order"))
    while (rows := await session.compute(next, pieces, None)) is not None:
        yield rows


async def _take_chain(session: Session, route: Route, phase: Phase, hop: int) -> list[ShuffledCounts]:
    """The counts of all shufflers before this hop, held against each other and against what was announced."""
    before = route.task.shufflers[hop - 1]
    chain = list((await session.recv(before, ShuffledChain)).hops)
    announced = sum(size for party, size in phase.groups.items() if party != route.task.analyst)
    came = [announced, *(each.forwarded for each in chain)]
    for number, (each, most) in enumerate(zip(chain, came, strict=False)):
        gone = sum(getattr(each, reason) for reason in DROPPED)
        if each.received != gone + each.forwarded or each.forwarded > most or (number and each.received != most):
            raise _differs(route.task.shufflers[number])
    if len(chain) != hop:
        raise _differs(before)
    return chain


async def sealed_rows(session: Session, route: Route, phase: Phase, reports: Rows) -> Rows:
    """Reports, sealed for all who open them on their way."""
    contexts = [
        (route.keys[party], _context(session, phase, hop)) for hop, party in reversed([*enumerate(route.openers)])
    ]
    (sealed,) = await session.map(lambda rows: seal(rows, contexts), [reports])
    return sealed


def seal(rows: Rows, contexts: Sequence[tuple[bytes, bytes]]) -> Rows:
    """Seals each row for several keys, one after the other."""
    for key, context in contexts:
        rows = seal_rows(rows, key, context)
    return rows


async def _opened(
    session: Session, route: Route, phase: Phase, hop: int, pieces: AsyncIterable[Rows]
) -> AsyncIterator[Rows]:
    """The rows of all pieces that can be read, without their layer."""
    assert route.own is not None
    key, context = route.own, _context(session, phase, hop)

    def peel(rows: Rows) -> Rows:
        messages, readable = open_rows(rows, key, context)
        return messages[readable]

    waiting: list[Rows] = []
    async for piece in pieces:
        waiting.append(piece)
        if len(waiting) == session.workers:
            for rows in await session.map(peel, waiting):
                yield rows
            waiting = []
    for rows in await session.map(peel, waiting):
        yield rows


async def _in_chunks(reports: Rows | AsyncIterable[Rows]) -> AsyncIterator[Rows]:
    """The reports in pieces of `CHUNK`, and of what is left."""
    if isinstance(reports, np.ndarray):
        for start in range(0, len(reports), CHUNK):
            yield reports[start : start + CHUNK]
        return
    left: list[Rows] = []
    async for piece in reports:
        rows = np.concatenate([*left, piece])
        whole = len(rows) - len(rows) % CHUNK
        for start in range(0, whole, CHUNK):
            yield rows[start : start + CHUNK]
        left = [rows[whole:]]
    if left and len(left[0]):
        yield left[0]


def _context(session: Session, phase: Phase, hop: int) -> bytes:
    """What a layer is for: this session, this phase, this hop."""
    return encode_labels("comine shuffled records", session.id, phase.number, hop)


def _check_key(message: ReportKey) -> None:
    if len(message.public_key) != KEY_BYTES:
        raise ValueError(f"a public key has {KEY_BYTES} bytes")


def _check_size(message: SealedRows, size: int) -> None:
    if len(message.data) != size:
        raise ValueError("other reports came than its counts say")


def _differs(shuffler: str) -> ProtocolViolation:
    return ProtocolViolation(
        f"what {shuffler} says of the reports that it shuffled does not agree with what came; that node is faulty or "
        "lies",
        party=shuffler,
    )
