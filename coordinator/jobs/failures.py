"""Why a job failed: of the errors that all parties report, the one from which the others follow."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from link.errors import (
    ComineError,
    DeadlineExceeded,
    JobCancelled,
    PeerError,
    ProtocolViolation,
    from_code,
    mentions_others,
    told_by,
)

T = TypeVar("T")


class Failure(NamedTuple):
    """An error and who reported it, in the order in which the reports came."""

    reporter: str
    error: BaseException


def root_cause(failures: Sequence[Failure], parties: Collection[str]) -> BaseException:
    """The error that began it.

    A fault at one party makes its peers lose it, be told of it, or wait in vain. So a fault that is none of these comes
    first, then a lost party, then a cancellation, then a deadline; among equals one that arose where it was reported.
    But of lost parties one that has not lost another itself: who ends because of a loss is soon lost to the rest. Where
    each has lost another, the one that most have lost: who cannot be reached often reaches nobody either. And of
    deadlines one that blames a party which reported nothing: all others wait, in a row, for the one that hangs. Where
    all have reported, one of a party that was late by itself; or else nobody is named alone, since all others wait for
    a party from which one keeps back what it has for it. What one party says of another is told as its word. Where it
    says that the other broke rules, that one is named alone only as `_judged` allows.

    Args:
        failures: What was reported.
        parties: All that could have.

    Raises:
        ValueError: There is no failure.
    """
    if not failures:
        raise ValueError("nothing has failed")
    reporters = {failure.reporter for failure in failures}
    losses = [
        (f.reporter, f.error.party)
        for f in failures
        if isinstance(f.error, PeerError) and f.error.party not in (None, f.reporter)
    ]
    losers, lost = {loser for loser, _ in losses}, Counter(party for _, party in losses)
    first = min(failures, key=lambda failure: _distance(failure, reporters, losers, lost))
    if not isinstance(first.error, DeadlineExceeded) or first.error.party not in reporters - {first.reporter}:
        return _attributed(first, failures, parties)
    waits = sorted((f.reporter, f.error.party) for f in failures if isinstance(f.error, DeadlineExceeded))
    told = [f"{reporter} for {awaited}" for reporter, awaited in waits if awaited is not None]
    return DeadlineExceeded(
        f"the job's deadline had passed while parties waited for others, {', '.join(told)}; one that keeps messages "
        "back from another makes all wait for that one, so check all these nodes, or allow more time"
    )


def _attributed(first: Failure, failures: Sequence[Failure], parties: Collection[str]) -> BaseException:
    """The error as its reporter's word where it is about others."""
    reporter, error = first
    if not isinstance(error, ComineError) or error.party == reporter:
        return error
    if error.party not in parties and not mentions_others(error, reporter, parties):
        return error
    if error.party in parties and isinstance(error, ProtocolViolation):
        return _judged(reporter, error, failures, parties)
    # What arises at a party in its own data it reports itself, unless it is lost.
    denied = not error.about_peers and any(failure.reporter == error.party for failure in failures)
    return told_by(reporter, error, None if denied else error.party)


def _judged(
    reporter: str, error: ProtocolViolation, failures: Sequence[Failure], parties: Collection[str]
) -> ComineError:
    """Who broke rules by what the parties say that they saw, of whom all but two may lie together.

    Of accuser and accused one deviates, as honest parties name only who did. So who is at odds with all others is one
    that deviates: at least one of these is honest. Where there is no such party, accuser and accused are both named.
    """
    odds: dict[str, set[str]] = defaultdict(set)
    accusations: dict[str, tuple[str, ProtocolViolation]] = {}  # by the accused
    for accuser, seen in failures:
        if isinstance(seen, ProtocolViolation) and seen.party is not None and seen.party != accuser:
            odds[accuser].add(seen.party)
            odds[seen.party].add(accuser)
            accusations.setdefault(seen.party, (accuser, seen))
    alone = [party for party in parties if odds[party] >= set(parties) - {party}]
    if len(alone) == 1 and len(parties) > 2:
        return told_by(*accusations[alone[0]], alone[0])
    return from_code(
        error.code,
        f"{reporter} or {error.party} deviates, so compare the logs of both, and what evidence they keep: "
        f"{told_by(reporter, error, None).message}",
    )


def _distance(
    failure: Failure, reporters: Collection[str], losers: Collection[str], lost: Mapping[str, int]
) -> tuple[int, bool, int, bool]:
    error = failure.error
    if not isinstance(error, ComineError):
        return 0, False, 0, False
    rank = 1
    for later, kind in ((2, PeerError), (3, JobCancelled), (4, DeadlineExceeded)):
        if isinstance(error, kind):
            rank = later
    if isinstance(error, DeadlineExceeded):
        late = error.party == failure.reporter
        return rank, error.party is None or error.party in reporters, -late, error.party is None
    foreign = error.party not in (None, failure.reporter)
    if isinstance(error, PeerError):
        return rank, error.party in losers, -lost.get(error.party or "", 0), foreign
    unseen = isinstance(error, ProtocolViolation) and error.party is None  # by whom, or by who was told
    return rank, unseen, 0, foreign


async def gathered(work: Mapping[str, Awaitable[T]], grace_s: float) -> dict[str, T]:
    """What each party's part comes to, all done at once; the others are cancelled once one has failed.

    Args:
        work: By party.
        grace_s: Seconds after the first failure in which others count too.

    Raises:
        BaseException: The root cause of all failures that came in time.
    """
    failures: list[Failure] = []

    async def one(party: str, part: Awaitable[T]) -> T:
        try:
            return await part
        except Exception as error:
            failures.append(Failure(party, error))
            raise

    tasks = {party: asyncio.ensure_future(one(party, part)) for party, part in work.items()}
    if not tasks:
        return {}
    try:
        _, pending = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
        if failures and pending and grace_s:
            await asyncio.wait(pending, timeout=grace_s)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    if failures:
        raise root_cause(failures, work)
    return {party: task.result() for party, task in tasks.items()}
