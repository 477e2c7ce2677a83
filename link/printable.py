"""What other machines said, made fit to be shown."""

from __future__ import annotations

from typing import Final

_MAX_SENTENCE: Final = 1000


def one_line(text: str) -> str:
    """What another machine said, fit for a line of a terminal: nothing in it moves a cursor or ends the line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_MAX_SENTENCE]
