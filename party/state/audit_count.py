"""How much each coordinator has made this node write into its audit log lately, which is kept for ever.

The log itself is what is counted: `node.db` keeps the sums up to the entry that it knows, and a node that starts reads
the rest out of the log, so that neither a restart nor the loss of `node.db` forgives anything.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from jobs.audit.events import Event, Proposed, Started
from jobs.audit.service_events import (
    CollectionCreated,
    EstimatesRead,
    QueryDecided,
    QueryRefused,
    ReleaseRefused,
    RouteCreated,
    TableReleased,
)
from link.errors import LimitExceeded

MOST_BYTES: Final = 64 << 20  # of one coordinator and one service within 24 hours
LINE_BYTES: Final = 512  # what is around the fields of an entry, its signature above all
JOB_BYTES: Final = 16 << 10  # the answer to a proposal, and what the session and the end of the job write
HOURS: Final = 24  # full ones, beside that which has begun
HOUR_S: Final = 3600
# What a coordinator alone brings about, as often as it likes, and of which service that is.
SERVICES: Final[Mapping[type[Event], str]] = {
    Proposed: "jobs",
    Started: "jobs",
    CollectionCreated: "collections",
    EstimatesRead: "collections",
    RouteCreated: "routes",
    QueryDecided: "queries",
    QueryRefused: "queries",
    TableReleased: "releases",
    ReleaseRefused: "releases",
}
# What has happened when it is written: `check` is asked before.
OUTCOMES: Final = (Started, QueryDecided, TableReleased)


class Bin(NamedTuple):
    """What one coordinator has made a service of the node write within one hour.

    Attributes:
        service: One of `SERVICES`.
        coordinator: Its name.
        hour: Hours since 1970.
        size: Bytes.
    """

    service: str
    coordinator: str
    hour: int
    size: int


class Sizes:
    """What events count together."""

    def __init__(self) -> None:
        self._sizes = Counter[tuple[str, str | bytes, int]]()

    def add(self, event: Event, at: float) -> None:
        """Takes note of an event that is written at a time, in Unix seconds."""
        service = SERVICES.get(type(event))
        if service is None:
            return
        fields = event.fields()
        whose = event.job if isinstance(event, Started) else fields["coordinator"]
        beside = LINE_BYTES + (JOB_BYTES if isinstance(event, Proposed) else 0)
        self._sizes[service, whose, int(at // HOUR_S)] += len(json.dumps(fields)) + beside

    def bins(self, coordinator_of: Callable[[bytes], str | None]) -> list[Bin]:
        """The sums.

        Args:
            coordinator_of: Who has proposed a job; None of one that nobody knows any more.
        """
        found = []
        for (service, whose, hour), size in self._sizes.items():
            coordinator = coordinator_of(whose) if isinstance(whose, bytes) else whose
            if coordinator is not None:
                found.append(Bin(service, coordinator, hour, size))
        return found


def first_hour(now: float) -> int:
    """The first hour that counts, at a time in Unix seconds."""
    return int(now // HOUR_S) - HOURS


class AuditCount:
    """What coordinators have made the node write within the last 24 hours. To be used on the event loop only.

    Args:
        bins: What is known of the time before.
        coordinator_of: Who has proposed a job.
        now: Unix seconds.
    """

    def __init__(
        self,
        bins: Iterable[Bin],
        coordinator_of: Callable[[bytes], str | None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._coordinator_of, self._now = coordinator_of, now
        self.sizes: dict[tuple[str, str], Counter[int]] = {}
        for each in bins:
            self._add(each, each.size)

    def bins(self, events: Iterable[Event]) -> list[Bin]:
        """What events count that are to be written now. May be called from any thread."""
        sizes, now = Sizes(), self._now()
        for event in events:
            sizes.add(event, now)
        return sizes.bins(self._coordinator_of)

    def take(self, bins: Sequence[Bin], me: str, *, refuses: bool) -> None:
        """Counts what is to be written.

        Args:
            bins: What, of each coordinator and service once.
            me: This party.
            refuses: Whether it may be refused; what has happened already is counted, however much it is.

        Raises:
            LimitExceeded: It would be more than the node writes of a coordinator; nothing is counted then.
        """
        for each in bins if refuses else ():
            self._check(each.service, each.coordinator, each.size, me)
        for each in bins:
            self._add(each, each.size)

    def give_back(self, bins: Sequence[Bin]) -> None:
        """Counts no more what could not be written."""
        for each in bins:
            self._add(each, -each.size)

    def check(self, outcome: type[Event], coordinator: str, me: str) -> None:
        """Refuses what would end in an event that has then happened, where as much is written as may be.

        Raises:
            LimitExceeded: As much is.
        """
        self._check(SERVICES[outcome], coordinator, 1, me)

    def _check(self, service: str, coordinator: str, size: int, me: str) -> None:
        sizes = self.sizes.get((service, coordinator), Counter[int]())
        since = first_hour(self._now())
        for hour in [hour for hour in sizes if hour < since]:
            del sizes[hour]
        over, free = sizes.total() + size - MOST_BYTES, self._now()
        if over <= 0:
            return
        for hour in sorted(sizes):
            over, free = over - sizes[hour], (hour + HOURS + 1) * HOUR_S
            if over <= 0:
                break
        raise LimitExceeded(
            f"the audit log of {me} takes {MOST_BYTES >> 20} MiB about {service} of a coordinator within 24 hours, "
            f"and this would be more for {coordinator}; ask again after "
            f"{dt.datetime.fromtimestamp(free, dt.UTC):%Y-%m-%d %H:%M} UTC, and for less at a time",
            party=me,
        )

    def _add(self, one: Bin, size: int) -> None:
        self.sizes.setdefault((one.service, one.coordinator), Counter())[one.hour] += size
