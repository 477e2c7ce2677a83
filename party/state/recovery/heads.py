"""How far the databases beside `node.db` had come according to the audit log: one that knows less is an older copy.

    queries.db, releases.db   a number that goes up with whatever counts; behind it, limits would begin anew
    frequency.db              by collection: its latest round in the log, and of how many reports
    shuffler.db               by route: its latest batch, and of how many reports; or that it is retired

Heads are read out of the log as `node.db` follows it, and kept there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from jobs.audit.events import Event
from jobs.audit.log import AuditLog
from jobs.audit.service_events import (
    BatchClosed,
    CollectionCreated,
    CollectionDeleted,
    CollectionLost,
    EstimatesRead,
    JointReleaseBegan,
    QueryDecided,
    ReleaseRefused,
    RoundEnded,
    RouteCreated,
    RouteLost,
    RouteRetired,
    TableReleased,
)
from link.errors import ConfigurationError
from link.logs.structured import Log

RETIRED: Final = 1 << 62  # in the place of a batch's number
BEGUN: Final = -1  # before the first round or batch


class Head(NamedTuple):
    """How far something in a database had come.

    Attributes:
        service: Which database: "queries", "releases", "frequency", "shuffler".
        subject: The collection or route; empty where the database counts as one.
        number: What goes up.
        size: Of how many reports, where that is known.
    """

    service: str
    subject: str
    number: int
    size: int = 0


class Heads(Protocol):
    """Where they are kept."""

    def heads(self, service: str) -> list[Head]:
        """Those of one database."""

    def raise_head(self, head: Head) -> None:
        """Keeps one, where it is beyond the one that is kept."""

    def drop_head(self, service: str, subject: str) -> None:
        """Forgets one."""


class Holder(Protocol):
    """A service whose database is held against the heads."""

    def compare(self, heads: Heads) -> list[Event]:
        """What the log is to record of what the database has lost as a whole.

        Raises:
            ConfigurationError: The database is older than the log.
        """


def follow(heads: Heads, events: Iterable[Event]) -> None:
    """Takes note of what the log says, in its order."""
    for event in events:
        match event:
            case QueryDecided():
                heads.raise_head(Head("queries", "", event.number))
            case TableReleased() | ReleaseRefused() | JointReleaseBegan():
                heads.raise_head(Head("releases", "", event.number))
            case CollectionCreated():
                # Whatever the log has of an earlier one of that name, be it after its end, is not of this one.
                heads.drop_head("frequency", event.collection)
                heads.raise_head(Head("frequency", event.collection, BEGUN))
            case RoundEnded() | EstimatesRead():
                heads.raise_head(Head("frequency", event.collection, event.round, event.reports))
            case CollectionDeleted() | CollectionLost():
                heads.drop_head("frequency", event.collection)
            case RouteCreated():
                heads.drop_head("shuffler", event.route)
                heads.raise_head(Head("shuffler", event.route, BEGUN))
            case BatchClosed():
                heads.raise_head(Head("shuffler", event.route, event.batch, event.received))
            case RouteRetired():
                heads.raise_head(Head("shuffler", event.route, RETIRED))
            case RouteLost():
                heads.drop_head("shuffler", event.route)


def hold(heads: Heads, audit: AuditLog, log: Log, *holders: Holder) -> None:
    """Holds databases against their heads when a node starts; what is lost as a whole is recorded in both logs.

    Raises:
        ConfigurationError: A database is older than the audit log.
        ResourceError: The audit log cannot be written.
    """
    gone = [event for holder in holders for event in holder.compare(heads)]
    if gone:
        audit.append(*gone)
        for event in gone:
            log.warning(event.event.replace("-", " "), **event.fields())


def lost(
    found: Iterable[Head],
    knows: Callable[[Head], bool | None],
    event_of: Callable[[str], Event],
    error: Callable[[str], ConfigurationError],
) -> list[Event]:
    """What the log is to record of what a database has nothing of any more.

    Args:
        found: The heads of what is in it.
        knows: Whether it knows all of one; None where it knows nothing of it.
        event_of: By a subject, the event that records its loss.
        error: By a subject in words, the error of a database that knows too little of it.

    Raises:
        ConfigurationError: It is an older copy.
    """
    events = list[Event]()
    for head in found:
        known = knows(head)
        if known is None:
            events.append(event_of(head.subject))
        elif not known:
            raise error(f"'{head.subject}'")
    return events


def older(file: str, me: str, what: str, otherwise: str) -> ConfigurationError:
    """The error of a database that knows less than the audit log beside it says.

    Args:
        file: Its name.
        me: This party.
        what: Of what it knows too little.
        otherwise: What to do where the last one is lost.
    """
    return ConfigurationError(
        f"{file} of {me} is older than the audit log beside it, which knows more of {what}; bring back the last one, "
        f"or {otherwise}",
        party=me,
    )
