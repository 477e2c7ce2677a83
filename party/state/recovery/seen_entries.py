"""The latest entry that `node.db` knows the audit log to have had, so that an older copy of the log is found out.

How a job stands is in the log before it is in the database, but for its start, of which a crash may leave the log
without. So that of a session whose frames have left no log goes unnoticed that lacks it, the entry is noted here once
it is on disk, before the first frame leaves, and again at the session's end.
"""

from __future__ import annotations

from pathlib import Path

from jobs.audit.tail import Mark, entry_at
from party.state.node_database import NodeTables


class SeenEntries(NodeTables):
    """That entry. Calls are short, and may be made from any thread."""

    def see(self, mark: Mark) -> None:
        """Notes an entry that is on disk.

        Raises:
            ResourceError: The database cannot be written.
        """
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO seen VALUES (1, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET log = excluded.log, "
                "seq = excluded.seq, entry = excluded.entry, place = excluded.place "
                "WHERE excluded.log != log OR excluded.seq > seq",  # of two jobs at once, the later entry stays
                mark,
            )

    def check(self, path: Path, here: Mark) -> None:
        """Makes sure that a log still has the entry that was noted of it.

        Args:
            path: The log.
            here: An entry of it.

        Raises:
            ConfigurationError: It was cut, or an older copy stands in its place.
            ResourceError: The log or the database cannot be read.
        """
        with self._using() as connection:
            row = connection.execute("SELECT log, seq, entry, place FROM seen").fetchone()
        if row is not None and row[0] == here.log:  # another log that follows the one noted has not its entries
            entry_at(path, Mark(*row))
