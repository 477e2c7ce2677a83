"""Standing approvals in `node.db`, as the audit log has them: their terms, the runs that used them, the latest time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jobs.audit.events import Event
from jobs.audit.standing_events import StandingApproved, StandingRevoked, StandingUsed, Terms
from party.state.node_database import NodeTables

_TERMS: Final = tuple(Terms.model_fields)


@dataclass(frozen=True, slots=True)
class Standing:
    """A standing approval as it stands.

    Attributes:
        terms: To what the party has agreed.
        certificate: PEM, of the party.
        signature: By its key, over the terms.
        revoked: By whom it was revoked; empty where it was not.
        uses: When it was used, Unix seconds, first the first.
    """

    terms: Terms
    certificate: str
    signature: bytes
    revoked: str
    uses: tuple[int, ...]


class StandingTables(NodeTables):
    """The tables of standing approvals. Calls are short, and may be made from any thread."""

    def standings(self) -> list[Standing]:
        """All of them, the newest first."""
        columns = ", ".join(_TERMS)
        with self._using() as connection:
            rows = connection.execute(
                f"SELECT id, certificate, signature, revoked, {columns} FROM standing ORDER BY approved DESC, id"  # noqa: S608
            ).fetchall()
            uses = connection.execute("SELECT standing, at FROM standing_uses ORDER BY at").fetchall()
        return [
            Standing(
                Terms.model_validate(dict(zip(_TERMS, row[4:], strict=True))),
                row[1],
                row[2],
                row[3],
                tuple(at for standing, at in uses if standing == row[0]),
            )
            for row in rows
        ]

    def follow_standings(self, events: Iterable[Event]) -> None:
        """Takes note of what the audit log says; what is known already stays as it is."""
        columns = ", ".join(_TERMS)
        with self._using() as connection:
            for event in events:
                match event:
                    case StandingApproved(terms=terms):
                        values = (terms.id, event.certificate, event.signature, *dict(terms).values())
                        places = ", ".join("?" * len(values))
                        connection.execute(
                            f"INSERT OR IGNORE INTO standing (id, certificate, signature, {columns}) VALUES ({places})",  # noqa: S608
                            values,
                        )
                    case StandingUsed():
                        connection.execute(
                            "INSERT OR IGNORE INTO standing_uses (job, standing, at) VALUES (?, ?, ?)",
                            (event.job, event.standing, event.at),
                        )
                    case StandingRevoked():
                        connection.execute("UPDATE standing SET revoked = ? WHERE id = ?", (event.by, event.standing))

    def standing_of(self, job_id: bytes) -> tuple[bytes, str] | None:
        """The job whose standing approval a run used, and by whom it was revoked; None where no run of that id did."""
        with self._using() as connection:
            row = connection.execute(
                "SELECT standing.job, revoked FROM standing_uses u JOIN standing ON standing = id WHERE u.job = ?",
                (job_id,),
            ).fetchone()
            return None if row is None else (row[0], row[1])

    def clock(self, now: float) -> float:
        """The latest time that was seen until now, and from now on this one, where it is later."""
        with self._using() as connection:
            row = connection.execute("SELECT latest FROM clock").fetchone()
            before = now if row is None else float(row[0])
            if row is None or now > before:
                connection.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", (now,))
            return before
