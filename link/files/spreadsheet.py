"""CSV that spreadsheets may open: the one place where comine writes cells, none of which they take for a formula.

What a value, an item, a column or a label is called, others chose. A spreadsheet runs a cell that begins with `=`, `+`,
`-` or `@`, so before such a text an apostrophe is written, which makes it text (OWASP, "CSV Injection"). Numbers are
left alone, also where a text holds nothing else: -5, +49 30 1234. A spreadsheet whose separator is the semicolon or the
tab cuts cells there, so what follows these, or the end of a line within a cell, is treated like the beginning of one.

Nothing is lost: a text that begins with apostrophes before a sign gets one more, and `as_named` takes one away.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from typing import IO, Final

_SIGNS: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the last four are full-width, as East Asian editions read them
_UNSEEN: Final = (  # what may precede a sign unseen, and apostrophes
    "[\x00-\x08\x0b\x0c\x0e- '\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]*"
)
_NUMBER: Final = r"[.,]?[0-9]+(?:[ .,][0-9]+)*(?:[eE][+-]?[0-9]+)?%?"
_NUMBERS: Final = re.compile(
    rf" *(?:[+-](?:{_NUMBER})?|{_NUMBER})(?:[;\t\r\n] *[+-]?(?:{_NUMBER})?)*"
)  # or signs alone
_FORMULA: Final = re.compile(rf"\A(?={_UNSEEN}[{_SIGNS}\t\r\n])|(?<=[;\t\r\n])(?={_UNSEEN}[{_SIGNS}])")
_CUT: Final = re.compile(rf";(?={_UNSEEN}[{_SIGNS}])")
_MARKED: Final = re.compile(rf"\A'(?={_UNSEEN}[{_SIGNS}\t\r\n])|(?<=[;\t\r\n])'(?={_UNSEEN}[{_SIGNS}])")


def as_text(value: str) -> str:
    """A text as a cell that no spreadsheet runs."""
    return value if _NUMBERS.fullmatch(value) else _FORMULA.sub("'", value)


def as_named(cell: str) -> str:
    """The text of which `as_text` made a cell; other texts as they are."""
    return _MARKED.sub("", cell)


def quoted(value: str) -> str:
    """`as_text` as it is written in a line of CSV: in quotes where it needs them, or is empty."""
    cell = as_text(value)
    return '"' + cell.replace('"', '""') + '"' if not cell or any(sign in cell for sign in ',"\r\n') else cell


def as_json(value: str) -> str:
    """A text in JSON for a cell that begins with a bracket; a semicolon before a sign is written as its number."""
    return _CUT.sub(r"\\u003b", json.dumps(value, ensure_ascii=False))


class _Lines:
    """Takes lines that end in CR LF, so that the csv module quotes cells with either, and ends them in a newline."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line[:-2] + "\n")


def write_rows(file: IO[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes rows as CSV whose lines end in a newline; of the cells, texts as `as_text` has them.

    Args:
        file: Text that was opened without a translation of newlines.
        rows: Cells; None is an empty one.
    """
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    writer.writerows([as_text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
