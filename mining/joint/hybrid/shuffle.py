"""Shuffled reports of one phase: the analyst gets them all, and nobody knows whose is whose.

    1  the analyst, and every shuffler but the first, has sent all parties a public key of this session       keys
    2  every party but the analyst seals each report for the analyst, and around that for each shuffler but
       the first, the last one innermost, and sends them to the first shuffler                                reports
    3  the first shuffler waits for all parties; it drops what has a wrong size, is beyond what its sender
       announced, or was there before; puts the rest in secret uniform order and sends it on, with its counts
    4  each further shuffler holds the counts against what came, takes its layer off, drops what it cannot read
       or was there before, and does as the one before it; the last one opens the reports to the analyst      open
    5  the analyst takes off the innermost layer

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

from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from crypto.primitives.hashing import encode_labels
from crypto.primitives.sealed import KEY_BYTES, OVERHEAD, Rows, new_private_key, open_rows, public_key_of, seal_rows
from ldp.shuffling.batch import TAG_KEY_BYTES, first_seen, shuffled, tags_of
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together
from mining.joint.hybrid.budget import hidden
from mining.joint.hybrid.parameters import Hops
from protos.v1.hybrid_pb2 import ReportKey, SealedRows, ShuffledChain, ShuffledCounts

LABEL: Final = "reports"
CHUNK: Final = 4096  # reports in one message, and in one piece of work: half a second of one core
DROPPED: Final = ("wrong_size", "over_share", "replayed", "unreadable")


@dataclass(frozen=True)
class Route:
    """The way of reports in one session, as one party sees it.

    Attributes:
        task: Names analyst and shufflers.
        keys: Public keys of those that take a layer off.
        own: This party's private key, where it is one of them.
    """

    task: Hops
    keys: Mapping[str, bytes]
    own: bytes | None

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


async def agree_on_route(session: Session, task: Hops) -> Route:
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
    return Route(task, keys, own)


async def send_reports(session: Session, route: Route, phase: Phase, reports: Rows | AsyncIterable[Rows]) -> None:
    """Step 2, at a party that is neither analyst nor first shuffler.

    Args:
        session: The phase's lane.
        route: The way.
        phase: The phase.
        reports: This party's, shape (`phase.groups[me]`, `phase.plain`), or pieces of these.
    """
    async for chunk in _in_chunks(reports):
        sealed = await sealed_rows(session, route, phase, chunk)
        await session.send(route.task.shufflers[0], SealedRows(data=sealed.tobytes()))


async def shuffle_first(session: Session, route: Route, phase: Phase, reports: Rows | AsyncIterable[Rows]) -> None:
    """Steps 2 and 3, at the first shuffler, with its own reports; arguments as of `send_reports`.

    Raises:
        ProtocolViolation: Too few reports are left to hide among.
    """
    size, counts, done = route.size(phase.plain, 0), ShuffledCounts(), 0
    senders = [party for party in session.parties if party not in (session.me, route.task.analyst)]

    async def own() -> Rows:
        sealed = [await sealed_rows(session, route, phase, chunk) async for chunk in _in_chunks(reports)]
        return _joined(sealed, size)

    async def share(rows: Coroutine[Any, Any, Rows]) -> Rows:
        nonlocal done
        found = await rows
        done += 1
        session.progress("shuffling reports", done, len(senders) + 1)
        return found

    # All at once: what waited to be read would fill the room of its sender, which would be named for it.
    theirs = (_take_share(session, party, phase.groups[party], size, counts) for party in senders)
    found = await together(share(rows) for rows in (own(), *theirs))
    taken = dict(zip((session.me, *senders), found, strict=True))
    counts.received += len(taken[session.me])
    kept = await session.compute(_without_replays, session.randomness("tags").bytes(TAG_KEY_BYTES), taken, counts)
    left = {party: len(rows) for party, rows in kept.items()} | {route.task.analyst: phase.groups[route.task.analyst]}
    if hidden(list(left.values()), route.task) < phase.n:
        short = next(party for party in senders if left[party] < phase.groups[party])
        raise ProtocolViolation(
            f"{short} sent fewer reports that can be used than it had announced, so that too few are left to hide "
            "among; check that node, and run the job again",
            party=short,
        )
    await hand_on(session, route, 0, np.concatenate(list(kept.values())), [], counts)


async def shuffle_next(session: Session, route: Route, phase: Phase) -> None:
    """Step 4, at a shuffler that is not the first.

    Raises:
        ProtocolViolation: The counts do not agree with each other or with what came, or too few reports are left to
            hide among.
    """
    shufflers = route.task.shufflers
    hop = shufflers.index(session.me)
    before = shufflers[hop - 1]
    chain = await _take_chain(session, route, phase, hop)
    counts, size = ShuffledCounts(received=chain[-1].forwarded), route.size(phase.plain, hop)
    pieces = []
    for start in range(0, chain[-1].forwarded, CHUNK):
        expected = size * min(CHUNK, chain[-1].forwarded - start)
        data = (await session.recv(before, SealedRows, lambda m, n=expected: _check_size(m, n))).data  # type: ignore[misc]
        pieces.append(np.frombuffer(data, np.uint8).reshape(-1, size))
    opened = await _opened(session, route, phase, hop - 1, pieces, size)
    counts.unreadable = chain[-1].forwarded - len(opened)
    key = session.randomness("tags").bytes(TAG_KEY_BYTES)
    kept = (await session.compute(_without_replays, key, {before: opened}, counts))[before]
    # Whose were dropped is not seen here: those of the largest parties may all be left. A report always hides itself.
    largest = sorted(phase.groups.values())[-route.task.colluding - 1 :]
    if max(1, len(kept) + phase.groups[route.task.analyst] - sum(largest)) < phase.n:
        raise ProtocolViolation(
            "so many reports came repeated or broken that too few are left to hide among; check the versions of all "
            "nodes, and run the job again"
        )
    await hand_on(session, route, hop, kept, chain, counts)


async def collect_shuffled(session: Session, route: Route, phase: Phase) -> tuple[Rows, int]:
    """Step 5, at the analyst.

    Returns:
        The other parties' reports, shape (n, `phase.plain`), and how many got lost on the way.

    Raises:
        ProtocolViolation: The counts do not agree with each other or with what came.
    """
    hops = len(route.task.shufflers)
    chain = await _take_chain(session, route, phase, hops)
    forwarded, size = chain[-1].forwarded, route.size(phase.plain, hops)
    rows = await session.receive_opened(route.task.shufflers[-1], LABEL, np.uint8, (forwarded, size))
    pieces = [rows[start : start + CHUNK] for start in range(0, forwarded, CHUNK)]
    opened = await _opened(session, route, phase, hops - 1, pieces, size)
    announced = sum(size for party, size in phase.groups.items() if party != session.me)
    return opened, announced - len(opened)


# -- what shufflers share ---------------------------------------------------------------------------------------------
async def _take_share(session: Session, party: str, announced: int, size: int, counts: ShuffledCounts) -> Rows:
    """A party's reports, no more than it has announced."""
    pieces, left = [], announced
    for _ in range(0, announced, CHUNK):
        data = (await session.recv(party, SealedRows)).data
        whole, broken = divmod(len(data), size)
        taken = min(whole, left)
        pieces.append(np.frombuffer(data, np.uint8, taken * size).reshape(-1, size))
        left -= taken
        counts.received += whole + (broken > 0)
        counts.wrong_size += broken > 0
        counts.over_share += whole - taken
    return _joined(pieces, size)


def _without_replays(key: bytes, taken: Mapping[str, Rows], counts: ShuffledCounts) -> dict[str, Rows]:
    """By sender what was not there before; of equal reports the first stays."""
    tags = tags_of([row.data for rows in taken.values() for row in rows], key)
    fresh = first_seen(tags, lambda each: np.zeros(len(each), np.bool_))
    counts.replayed += int(np.count_nonzero(~fresh))
    bounds = np.cumsum([len(rows) for rows in taken.values()])[:-1]
    return {party: rows[new] for (party, rows), new in zip(taken.items(), np.split(fresh, bounds), strict=True)}


async def hand_on(
    session: Session, route: Route, hop: int, rows: Rows, chain: Sequence[ShuffledCounts], counts: ShuffledCounts
) -> None:
    """In secret order to the next shuffler, or to the analyst."""
    counts.forwarded = len(rows)
    order = session.randomness("order")
    rows = await session.compute(shuffled, rows, order)
    shufflers = route.task.shufflers
    to = shufflers[hop + 1] if hop + 1 < len(shufflers) else route.task.analyst
    await session.send(to, ShuffledChain(hops=[*chain, counts]))
    if to == route.task.analyst:
        await session.open(LABEL, rows, (to,))
        return
    for start in range(0, len(rows), CHUNK):
        await session.send(to, SealedRows(data=rows[start : start + CHUNK].tobytes()))


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


async def _opened(session: Session, route: Route, phase: Phase, hop: int, pieces: Sequence[Rows], size: int) -> Rows:
    """The rows of all pieces that can be read, without their layer."""
    assert route.own is not None
    key, context = route.own, _context(session, phase, hop)

    def peel(rows: Rows) -> Rows:
        messages, readable = open_rows(rows, key, context)
        return messages[readable]

    return _joined(await session.map(peel, pieces), size - OVERHEAD)


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


def _joined(pieces: Sequence[Rows], size: int) -> Rows:
    return np.concatenate([np.empty((0, size), np.uint8), *pieces])


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
