"""Words for people: what other machines said, made fit to be shown, and names in a row."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

_MAX_SENTENCE: Final = 1000
_LEAST_WIDTH, _MOST_WIDTH = 40, 100  # of lines of text


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


def enumeration(names: Sequence[str], word: str = "and") -> str:
    """Names as one says them: the last after a word; there is one at least."""
    *some, last = names
    return f"{', '.join(some)} {word} {last}" if some else last


def text_width() -> int:
    """How many columns text may take: those of the terminal, within what one reads with ease; 80 without a terminal."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, _LEAST_WIDTH), _MOST_WIDTH)


def wrapped(sentence: str, indent: str = "", further: str | None = None) -> list[str]:
    """A sentence in lines of `text_width`.

    Args:
        sentence: It.
        indent: Before its first line.
        further: Before the others; as many blanks as `indent` has characters, unless said.
    """
    blanks = " " * len(indent) if further is None else further
    return textwrap.wrap(
        sentence,
        text_width(),
        initial_indent=indent,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    )
