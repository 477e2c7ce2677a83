"""Words for people: what other machines said, made fit to be shown, and names in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MAX_SENTENCE: Final = 1000


def why_not_read(error: OSError | ValueError) -> str:
    """Why a file cannot be read, in words: Python refuses some names as values that are wrong."""
    return (error.strerror or "unknown") if isinstance(error, OSError) else "no file can have this name"


def is_text(text: str) -> bool:
    """Whether text can be written as UTF-8: half a character, a lone surrogate, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str) -> str:
    """What another machine said, fit for a line of a terminal: nothing in it moves a cursor or ends the line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_MAX_SENTENCE]


def enumeration(names: Sequence[str]) -> str:
    """Names as one says them: the last after "and"; there is one at least."""
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
