"""Guesses how data are written in a source, from its first lines; a proposal to look at, never a decision."""

from __future__ import annotations

import csv
import gzip
import itertools
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from link.errors import InputDataError
from mining.data.copies import head_of, is_plain
from mining.data.formats.csv_text import improper
from mining.data.formats.text_files import existing
from mining.data.schemes.registry import scheme_of
from mining.data.schemes.scheme import DatabaseScheme
from mining.data.source_options import PLAIN, SourceOptions

Format = Literal["basket", "long", "wide", "csv", "parquet", "sql"]

HEAD_BYTES: Final = 1 << 18  # enough lines to judge by, and quick to read
ID_WORDS: Final = re.compile(
    r"(t|transaction|receipt|basket|order|invoice|ticket|session|customer|member)?[ _-]?(id|no|number)"
    r"|transaction|receipt|basket|order|invoice|ticket|session|customer|member",
    re.IGNORECASE,
)
ITEM_WORDS: Final = re.compile(
    r"(item|article|product|stock)s?[ _-]?(id|no|number|name|code|description)?|sku|description", re.IGNORECASE
)
_GZIP_MAGIC: Final = b"\x1f\x8b"
_PARQUET_MAGIC: Final = b"PAR1"
_DOCUMENTS: Final = (b"PK\x03\x04", b"%PDF", b"\xd0\xcf\x11\xe0")  # archives and Word's new files, PDF, Office's old
_BYTE_ORDER_MARK: Final = "\ufeff"
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_TRUTH: Final = frozenset(("0", "1", "false", "true", "False", "True", "FALSE", "TRUE"))
_USUAL: Final = 0.5  # share of the lines that a separator must be in
_SPACED: Final = 0.9  # share of the separators that a blank must follow


@dataclass(frozen=True, slots=True)
class Guess:
    """What a source looks like.

    Attributes:
        format: As in `[[dataset]]`.
        reason: Why, in words that hold no cell of the source.
        separator: Between items or cells, where it is not the format's own.
        id: Column that numbers transactions, where it is not called `id`.
        item: Column of the items, where it is not called `item`.
    """

    format: Format
    reason: str
    separator: str | None = None
    id: str | None = None
    item: str | None = None

    @property
    def settings(self) -> dict[str, str]:
        """The keys that `[[dataset]]` needs for it."""
        given = {"format": self.format, "separator": self.separator, "id": self.id, "item": self.item}
        return {key: value for key, value in given.items() if value is not None}


def guess_format(
    source: str, kind: Literal["transactions", "table"] = "transactions", options: SourceOptions = PLAIN
) -> Guess:
    """What the source looks like.

    Args:
        source: A file, or the URL of a database.
        kind: What is in it.
        options: What else reading it needs.

    Raises:
        InputDataError: The file cannot be opened, is empty, or is a document of another kind.
    """
    if isinstance(scheme_of(source), DatabaseScheme):
        return Guess("sql", "it is the URL of a database")
    path = Path(source)
    head, whole = _head(path) if is_plain(source, options) else head_of(source, options, HEAD_BYTES)
    if head.startswith(_PARQUET_MAGIC):
        return Guess("parquet", "it begins as Parquet files do")
    if head.startswith(_DOCUMENTS):
        raise InputDataError(f"{path} is a document or an archive, not text; save what is in it as CSV")
    text = head.decode("utf-8", "ignore").removeprefix(_BYTE_ORDER_MARK)
    lines = text.replace("\r", "\n").split("\n") if "\n" not in text else text.split("\n")
    if not whole and len(lines) > 1:
        lines.pop()  # cut off in its middle
    lines = [line.removesuffix("\r") for line in lines if line.strip()]
    if not lines:
        raise InputDataError(f"{path} holds no line of text; name a file with {'rows' if kind == 'table' else kind}")
    return _guess_columns(lines, path) if kind == "table" else _guess_text(lines)


def _head(path: Path) -> tuple[bytes, bool]:
    """The first bytes, decompressed, and whether they are all."""
    try:
        with existing(path).open("rb") as file:
            packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        with gzip.open(path) if packed else path.open("rb") as file:
            head = file.read(HEAD_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputDataError(f"{path} is not a whole gzip file; fetch or compress it again") from None
    except OSError as error:
        raise InputDataError(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from None
    return head[:HEAD_BYTES], len(head) <= HEAD_BYTES


def _guess_columns(lines: list[str], path: Path) -> Guess:
    """How a table with a first line of names is written."""
    separator = max(_SEPARATORS, key=lambda each: (lines[0].count(each) > 0, sum(each in line for line in lines)))
    try:
        header = next(csv.reader(lines, delimiter=separator))
    except csv.Error as error:
        raise improper(path, 1, error) from None
    named = ["id" for name in header if name == "id"] or [name for name in header if ID_WORDS.fullmatch(name)]
    id_column = (named or header)[0]
    reason = f'its first line has {len(header)} names between {_SEPARATORS[separator]}, and "{id_column}" for ids'
    return Guess("csv", reason, _unless_comma(separator), _unless("id", id_column))


def _guess_text(lines: list[str]) -> Guess:
    shares = {each: sum(each in line for line in lines) / len(lines) for each in _SEPARATORS}
    separator = max(shares, key=shares.__getitem__)  # the first of equals
    if shares[separator] < _USUAL:
        if any(" " in line.strip() or "\t" in line.strip() for line in lines):
            return Guess("basket", "its lines hold words between blanks")
        return Guess("basket", "its lines hold one word each")
    between = _SEPARATORS[separator]
    try:
        header, *body = csv.reader(lines, delimiter=separator, strict=True)
    except csv.Error:
        return Guess("csv", f"its lines hold quotes, and {between} between cells", _unless_comma(separator))
    table = _guess_table(header, body, separator)
    if table is not None:
        return table
    count = sum(line.count(separator) for line in lines)
    if separator != "\t" and sum(line.count(separator + " ") for line in lines) >= _SPACED * count:
        return Guess("basket", f"its lines hold items between {between}, each with a blank after it", separator + " ")
    return Guess("csv", f"its lines hold items between {between}", _unless_comma(separator))


def _guess_table(header: list[str], body: list[list[str]], separator: str) -> Guess | None:
    """What a table with a first line of names looks like; None where it looks like no such table."""
    if len(header) < 2 or not body or any(len(record) != len(header) for record in body):
        return None
    sign, columns = _unless_comma(separator), list(zip(*body, strict=True))
    if len(set(header)) == len(header) and not _TRUTH & set(header):
        others = [name for name, cells in zip(header, columns, strict=True) if not set(cells) <= _TRUTH]
        if others in ([], header[:1]) and len(header) - len(others) >= 2:
            id_column = _unless("id", others[0]) if others else None
            return Guess("wide", "its first line has names, and the lines below have cells of 0 and 1", sign, id_column)
    ids = [name for name in header if ID_WORDS.fullmatch(name)]
    items = [name for name in header if ITEM_WORDS.fullmatch(name)]
    if ids and items:
        id_name = "id" if "id" in ids else ids[0]
        item_name = "item" if "item" in items else items[0]
        reason = f'its first line names a column "{id_name}" and a column "{item_name}"'
        return Guess("long", reason, sign, _unless("id", id_name), _unless("item", item_name))
    if len(header) != 2 or not _number_runs(columns[0]):
        return None
    reason = "it has two columns, and the first gives several lines in a row the same number"
    if any(map(str.isdigit, header[0])):
        return Guess("long", f"{reason}; it lacks a first line with names: write id{separator}item above", sign)
    return Guess("long", reason, sign, _unless("id", header[0]), _unless("item", header[1]))


def _number_runs(cells: tuple[str, ...]) -> bool:
    """Whether cells number transactions of several lines: each value in one run, and runs longer than one."""
    runs = 1 + sum(one != other for one, other in itertools.pairwise(cells))
    return runs == len(set(cells)) and runs < len(cells) and all(any(map(str.isdigit, cell)) for cell in cells)


def _unless_comma(separator: str) -> str | None:
    return _unless(",", separator)


def _unless(usual: str, text: str) -> str | None:
    return None if text == usual else text
