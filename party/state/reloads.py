"""How people ask a running node, through `node.db`, to read its files anew, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from party.state.node_database import NodeTables

KEPT: Final = 100  # requests; older ones are forgotten


class Asked(NamedTuple):
    """A request that awaits its answer.

    Attributes:
        number: Which one.
        file: The node's file, as who asks has it.
    """

    number: int
    file: str


class Answer(NamedTuple):
    """What the node has answered.

    Attributes:
        changed: What is other than before, by its place in the files.
        code: Of what keeps the node from it; empty where nothing does.
        message: The sentence of that.
    """

    changed: tuple[str, ...] = ()
    code: str = ""
    message: str = ""


class Reloads(NodeTables):
    """Requests and answers. Calls are short, and may be made from any thread."""

    def ask(self, file: str) -> int:
        """Asks the node to read its file; the number of the request."""
        with self._changing() as connection:
            number = connection.execute("INSERT INTO reloads (file) VALUES (?)", (file,)).lastrowid or 0
            connection.execute("DELETE FROM reloads WHERE number <= ?", (number - KEPT,))
        return number

    def asked(self) -> list[Asked]:
        """The requests that await an answer, first the first."""
        with self._using() as connection:
            found = connection.execute("SELECT number, file FROM reloads WHERE NOT answered ORDER BY number")
            return [Asked(*row) for row in found]

    def answer(self, numbers: Sequence[int], answer: Answer) -> None:
        """Answers requests."""
        with self._changing() as connection:
            connection.executemany(
                "UPDATE reloads SET answered = 1, changed = ?, code = ?, message = ? WHERE number = ?",
                [("\n".join(answer.changed), answer.code, answer.message, number) for number in numbers],
            )

    def answered(self, number: int) -> Answer | None:
        """The answer to a request; None while there is none."""
        with self._using() as connection:
            found = connection.execute(
                "SELECT changed, code, message FROM reloads WHERE number = ? AND answered", (number,)
            ).fetchone()
            return None if found is None else Answer(tuple(found[0].splitlines()), *found[1:])
