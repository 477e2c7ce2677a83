"""Why a job failed: of the errors that all parties report, the one from which the others follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from link.errors import ComineError, DeadlineExceeded, JobCancelled, PeerError


class Failure(NamedTuple):
    """An error and who reported it, in the order in which the reports came."""

    reporter: str
    error: BaseException


def root_cause(failures: Sequence[Failure]) -> BaseException:
    """The error that began it.

    A fault at one party makes its peers lose it, be told of it, or wait in vain. So a fault that is none of these comes
    first, then a lost party, then a cancellation, then a deadline; among equals one that arose where it was reported.
    But of lost parties one that has not lost another itself: who ends because of a loss is soon lost to the rest. Where
    each has lost another, the one that most have lost: who cannot be reached often reaches nobody either. And of
    deadlines one that blames a party which reported nothing: all others wait, in a row, for the one that hangs. Where
    all have reported, one that blames whom most wait for.

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
    awaited = Counter(f.error.party for f in failures if isinstance(f.error, DeadlineExceeded))
    return min(failures, key=lambda failure: _distance(failure, reporters, losers, lost, awaited)).error


def _distance(
    failure: Failure,
    reporters: Collection[str],
    losers: Collection[str],
    lost: Mapping[str, int],
    awaited: Mapping[str | None, int],
) -> tuple[int, bool, int, bool]:
    error = failure.error
    if not isinstance(error, ComineError):
        return 0, False, 0, False
    rank = 1
    for later, kind in ((2, PeerError), (3, JobCancelled), (4, DeadlineExceeded)):
        if isinstance(error, kind):
            rank = later
    if isinstance(error, DeadlineExceeded):
        return rank, error.party is None or error.party in reporters, -awaited[error.party], False
    foreign = error.party not in (None, failure.reporter)
    if isinstance(error, PeerError):
        return rank, error.party in losers, -lost.get(error.party or "", 0), foreign
    return rank, False, 0, foreign
