"""How many plans each coordinator has asked this node for lately: kept on disk, so that a restart forgives nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from link.errors import PolicyDenied
from party.state.node_database import NodeTables

PERIOD_S: Final = 24 * 3600


class PlanCount(NodeTables):
    """The plans of the last 24 hours. Calls are short, and may be made from any thread."""

    def restore(self, asked: Iterable[tuple[str, float]], since: float) -> None:
        """Brings back the plans of a time, in the place of those that are counted.

        Args:
            asked: By the audit log, coordinators and when they asked, in Unix seconds.
            since: After which it has all, in Unix seconds.

        Raises:
            ComineError: The database cannot be written.
        """
        with self._changing() as connection:
            connection.execute("DELETE FROM plans WHERE asked > ?", (since,))
            connection.executemany("INSERT INTO plans (coordinator, asked) VALUES (?, ?)", asked)

    def take(self, coordinator: str, most: int, me: str, now: float) -> None:
        """Counts a plan of a coordinator.

        Args:
            coordinator: Who asks.
            most: How many it may ask for within `PERIOD_S`.
            me: This party.
            now: Unix seconds.

        Raises:
            PolicyDenied: It has asked so often already.
            ComineError: The database cannot be written.
        """
        with self._changing() as connection:
            connection.execute("DELETE FROM plans WHERE asked <= ?", (now - PERIOD_S,))
            asked = [
                when
                for (when,) in connection.execute(
                    "SELECT asked FROM plans WHERE coordinator = ? ORDER BY asked", (coordinator,)
                )
            ]
            if len(asked) < most:
                connection.execute("INSERT INTO plans (coordinator, asked) VALUES (?, ?)", (coordinator, now))
                return
        free = dt.datetime.fromtimestamp(asked[-most] + PERIOD_S, dt.UTC)
        raise PolicyDenied(
            f"the policy of {me} answers {most} plans of a coordinator within 24 hours (rule max_plans); the next may "
            f"be asked for after {free:%Y-%m-%d %H:%M} UTC",
            party=me,
        )
