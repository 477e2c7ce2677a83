"""Notices that are yet to be delivered, in `node.db`, so that they outlive the node."""

from __future__ import annotations

from typing import Final, NamedTuple

from party.state.node_database import NodeTables

MOST: Final = 256  # notices; the oldest make room for those that come


class Kept(NamedTuple):
    """A notice.

    Attributes:
        number: Which one; later ones have higher numbers.
        text: As people get it.
    """

    number: int
    text: str


class KeptNotices(NodeTables):
    """The notices. Calls are short, and may be made from any thread."""

    def add(self, text: str) -> Kept:
        """Keeps a notice until it is removed, or so many later ones have come."""
        with self._changing() as connection:
            number = connection.execute("INSERT INTO notices (text) VALUES (?)", (text,)).lastrowid or 0
            connection.execute(
                "DELETE FROM notices WHERE number <= "
                "(SELECT number FROM notices ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (MOST,),
            )
        return Kept(number, text)

    def remove(self, kept: Kept) -> None:
        """Keeps a notice no longer."""
        with self._changing() as connection:
            connection.execute("DELETE FROM notices WHERE number = ?", (kept.number,))

    def all(self) -> list[Kept]:
        """All, the oldest first."""
        with self._using() as connection:
            return [Kept(*row) for row in connection.execute("SELECT number, text FROM notices ORDER BY number")]
