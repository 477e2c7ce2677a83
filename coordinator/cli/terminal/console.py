"""What goes where: results to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from link.files.printable import wrapped
from link.files.spreadsheet import as_text

if TYPE_CHECKING:
    from rich.table import Table

_FIGURE: Final = re.compile(r"[-−]?[\d,]+(\.\d+)?([eE][-+]?\d+)?( ?(%|[kMGT]?B|s))?|–|")


def note(sentence: str) -> None:
    """A line for people, on standard error."""
    with contextlib.suppress(OSError):  # nobody listens; the result counts
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def write(text: str) -> None:
    """A piece of the result, on standard output."""
    sys.stdout.write(text)


def write_sentence(sentence: str, indent: str = "") -> None:
    """A sentence, in lines as wide as a terminal has them."""
    write("".join(f"{line}\n" for line in wrapped(sentence, indent)))


def write_json(contents: Any) -> None:
    """The result as JSON, on standard output."""
    write(json.dumps(contents, indent=2, ensure_ascii=False) + "\n")


def write_bytes(chunks: Iterable[bytes | memoryview]) -> None:
    """A result in UTF-8 already, on standard output."""
    sys.stdout.flush()
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table: ruled on a terminal; columns between tabs in a pipe, none of which a spreadsheet takes for a formula."""
    if not sys.stdout.isatty():
        for row in (heads, *rows):
            write("\t".join(as_text(_harmless(cell)) for cell in row) + "\n")
        return
    from rich.console import Console

    Console().print(ruled(heads, rows, title))


def ruled(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    """A table as terminals show it."""
    from rich.table import Table
    from rich.text import Text

    lines = list(rows)
    table = Table(title=title, title_justify="left", title_style="bold")
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if lines and all(map(_is_figure, _column(lines, place))) else "left")
    for row in lines:
        table.add_row(*(Text(_harmless(cell)) for cell in row))  # not as markup, which items may look like
    return table


def _column(rows: Iterable[Sequence[str]], place: int) -> Iterator[str]:
    return (row[place] for row in rows)


def _is_figure(cell: str) -> bool:
    """Whether a cell is a number, which is read from its end."""
    return _FIGURE.fullmatch(cell) is not None


def _harmless(text: str) -> str:
    """The text without what would move a terminal's cursor, change its colours, or begin another cell or line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
