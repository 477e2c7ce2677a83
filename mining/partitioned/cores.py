"""The cores of a machine, shared by the jobs that count in blocks on it at the same time."""

from __future__ import annotations

import threading

from link.executor import available_cores


class Cores:
    """Says how many processes each of several users may have; no one ever waits for another.

    Each may have one, and as many as its even share of the cores while there are so many left. A user with more than
    that, since it was alone before, gives the rest up when it asks next. So there are never more processes than cores
    and users together.

    Args:
        number: Of cores; by default those that this process may use.
    """

    def __init__(self, number: int | None = None) -> None:
        self.number = number or available_cores()
        self._held: dict[object, int] = {}
        self._lock = threading.Lock()

    def allot(self, user: object, wanted: int) -> int:
        """How many processes a user may have from now on, at least one.

        Args:
            user: Hashable by identity.
            wanted: The most that it has work for.
        """
        with self._lock:
            self._held.pop(user, None)
            share = max(self.number // (len(self._held) + 1), 1)
            free = self.number - sum(self._held.values())
            self._held[user] = max(min(wanted, share, free), 1)
            return self._held[user]

    def give_up(self, user: object) -> None:
        """A user has ended its processes."""
        with self._lock:
            self._held.pop(user, None)
