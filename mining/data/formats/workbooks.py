"""Sheets of workbooks, as Excel and LibreOffice write them, as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Final

from link.errors import ConfigurationError, InputDataError

_SUFFIXES: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def is_workbook(source: str) -> bool:
    """Whether a source is a workbook, by its name."""
    return source.partition("?")[0].lower().endswith(_SUFFIXES)


def sheet_as_csv(path: Path, sheet: str | None, separator: str) -> Iterator[bytes]:
    """The rows of a sheet as lines of CSV in UTF-8, every cell in quotes; rows without any cell are left out.

    Args:
        path: The workbook.
        sheet: Its name; the first by default.
        separator: Between cells.

    Raises:
        ConfigurationError: python-calamine is not installed.
        InputDataError: It cannot be read, or has no such sheet.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise ConfigurationError(
            "Reading workbooks needs python-calamine; install it with: pip install 'comine[excel]'"
        ) from None
    try:
        book = CalamineWorkbook.from_path(path)
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise InputDataError(f'{path} has no sheet "{sheet}" among its {len(names)}; check [[dataset]] sheet.')
        rows = book.get_sheet_by_name(names[0] if sheet is None else sheet).to_python(skip_empty_area=True)
    except (CalamineError, OSError, IndexError) as error:
        raise InputDataError(f"{path} cannot be read as a workbook; save it again, without a password.") from error
    for row in rows:
        cells = [_text(cell) for cell in row]
        if any(cells):
            quoted = ('"' + cell.replace('"', '""') + '"' for cell in cells)
            yield (separator.join(quoted) + "\n").encode()


def _text(cell: object) -> str:
    """A cell as text, as cells of Parquet files are written."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
