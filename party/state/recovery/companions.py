"""The databases beside `node.db` without which limits would begin anew: a node must have those that it has had."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jobs.audit.events import Event
from jobs.audit.service_events import JointReleaseBegan, QueryDecided, TableReleased
from link.errors import ConfigurationError
from party.services.anonymization.releases import FILE as RELEASES
from party.services.queries.log import FILE as QUERIES
from party.state.store import Store

_TOLD_BY: Final[dict[type[Event], str]] = {QueryDecided: QUERIES, TableReleased: RELEASES, JointReleaseBegan: RELEASES}


def note(store: Store, state: Path, events: Iterable[Event] = ()) -> None:
    """Notes which of them the node has, and which it must have had according to its audit log.

    Args:
        store: The node's.
        state: Its folder.
        events: Of the log.
    """
    had = {name for name in _TOLD_BY.values() if _has(state / name)}
    had |= {_TOLD_BY[type(event)] for event in events if type(event) in _TOLD_BY}
    if missing := sorted(had - set(store.companions())):
        store.add_companions(missing)


def check(store: Store, state: Path, me: str) -> None:
    """Makes sure that none of them is lost.

    Raises:
        ConfigurationError: One is.
    """
    for name in store.companions():
        if not _has(state / name):
            raise ConfigurationError(
                f"{name} of {me} is gone or empty, and without it what has left before would not count any more; bring "
                "it back from a copy, or begin without a history in an empty state folder (see the page on running a "
                "party)"
            )


def _has(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
