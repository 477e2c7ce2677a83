"""What one transaction takes: which of the submissions that wait count, decided in their order.

Nothing is noted in memory before it is on disk: where a commit fails, all is as if nothing had been sent.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ldp.reports import Reports
from party.services.frequency.storage.folding import Folding
from party.services.frequency.storage.participants import Claim, Participants, Ruling, summary
from party.services.frequency.storage.refusals import Key, Refusals
from party.services.frequency.storage.segments import Row
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE, OVER_QUOTA

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True, eq=False, weakref_slot=True)
class OpenRound:
    """A round whose reports are taken.

    Attributes:
        row: Its row in the database.
        key: What its refusals are counted under.
        period: Who took part.
        folding: Its tally.
        counted: Reports that were counted.
        next: Number of the next segment.
        ended: Whether nothing more is taken.
    """

    row: int
    key: Key
    period: Participants
    folding: Folding
    counted: int
    next: int = 0
    ended: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """Reports that wait to be counted."""

    round: OpenRound
    claim: Claim
    reports: Reports
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[NDArray[np.uint8]]

    @property
    def nbytes(self) -> int:
        """About what it takes on disk and in memory."""
        return self.claim.pseudonyms.nbytes + sum(part.nbytes for part in self.reports.fields)


@dataclass(slots=True, eq=False)
class Commit:
    """What a transaction writes, and what is noted when it has succeeded.

    Attributes:
        rulings: Of each submission.
        rows: To be written.
    """

    rulings: dict[Submission, Ruling]
    rows: list[Row] = field(default_factory=list)
    _segments: list[tuple[OpenRound, Row, Reports]] = field(default_factory=list)
    _refused: list[tuple[Key, str, int]] = field(default_factory=list)

    @classmethod
    def of(cls, submissions: Sequence[Submission]) -> Commit:
        """Rules on submissions, in their order, and takes the memory that noting them will need."""
        rulings: dict[Submission, Ruling] = {}
        for period, some in by(submissions, lambda each: each.round.period):
            found = period.rule([each.claim for each in some])
            period.reserve(found)
            rulings.update(zip(some, found, strict=True))
        commit = cls(rulings)
        for round_, some in by(submissions, lambda each: each.round):
            commit._take(round_, some)
        return commit

    def note(self, refusals: Refusals) -> None:
        """Notes what is on disk now."""
        for period, some in by(self.rulings.items(), lambda item: item[0].round.period):
            period.admit([ruling for _, ruling in some])
        for round_, row, reports in self._segments:
            round_.next = row.number + 1
            round_.counted += row.size
            round_.folding.append(row.number, row.size, len(row.reports), reports)
        for key, reason, number in self._refused:
            refusals.note(key, reason, number)

    def _take(self, round_: OpenRound, submissions: Sequence[Submission]) -> None:
        rulings = [self.rulings[each] for each in submissions]
        statuses = np.concatenate([ruling.statuses for ruling in rulings])
        for reason, status in (("duplicate", DUPLICATE), ("over_quota", OVER_QUOTA)):
            if number := int(np.count_nonzero(statuses == status)):
                self._refused.append((round_.key, reason, number))
        reports = _counted(submissions, rulings)
        if reports is not None:
            tags, submitters = summary(rulings)
            content = reports.to_bytes()
            row = Row(round_.row, round_.next, len(reports), tags.tobytes(), submitters.tobytes(), content)
            self.rows.append(row)
            self._segments.append((round_, row, reports))


def by(items: Iterable[T], key: Callable[[T], K]) -> Iterable[tuple[K, list[T]]]:
    """The items by a key, in the order in which they came."""
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found.items()


def _counted(submissions: Sequence[Submission], rulings: Sequence[Ruling]) -> Reports | None:
    """The reports of one round that are to be counted."""
    batches = [
        each.reports if len(ruling.tags) == len(each.reports) else each.reports[ruling.statuses == COUNTED]
        for each, ruling in zip(submissions, rulings, strict=True)
        if len(ruling.tags)
    ]
    if not batches:
        return None
    return batches[0] if len(batches) == 1 else Reports.concatenated(batches)
