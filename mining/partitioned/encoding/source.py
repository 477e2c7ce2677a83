"""Where a party's transactions or its table are, and how they are written there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mining.data.copies import Wanted
from mining.data.source_options import PLAIN, SourceOptions


@dataclass(frozen=True, slots=True)
class TransactionSource:
    """The arguments of `mining.data.loading.load_transactions`, checked.

    Attributes:
        place: Path of a file, or the URL of a database.
        format: One of `mining.data.loading.FORMATS`.
        separator: Between items or cells; None: what the format has by default.
        query: For format `sql`.
        id_column: Of transactions, in the long form.
        item_column: Of items, in the long form.
        options: What else reading it needs.
    """

    place: str
    format: str
    separator: str | None = None
    query: str | None = None
    id_column: str = "id"
    item_column: str = "item"
    options: SourceOptions = PLAIN

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.place)

    @property
    def settings(self) -> list[object]:
        """All that says what is read, but the file itself."""
        return [
            self.place,
            self.format,
            self.separator,
            self.query,
            self.id_column,
            self.item_column,
            *self.options.settings,
        ]

    @property
    def wanted(self) -> Wanted:
        """How it is read from files."""
        return Wanted(self.format, self.separator, self.format in ("long", "wide"), (self.id_column, self.item_column))


@dataclass(frozen=True, slots=True)
class TableSource:
    """The arguments of `mining.data.loading.load_table`, checked.

    Attributes:
        place: Path of a file, or the URL of a database.
        format: One of `mining.data.loading.TABLE_FORMATS`.
        separator: Between cells; None: a comma.
        query: For format `sql`.
        id_columns: The columns that together name a row.
        options: What else reading it needs.
    """

    place: str
    format: str
    separator: str | None = None
    query: str | None = None
    id_columns: tuple[str, ...] = ("id",)
    options: SourceOptions = PLAIN

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.place)

    @property
    def settings(self) -> list[object]:
        """All that says what is read, but the file itself."""
        return [
            "table",
            self.place,
            self.format,
            self.separator,
            self.query,
            list(self.id_columns),
            *self.options.settings,
        ]

    @property
    def wanted(self) -> Wanted:
        """How it is read from files."""
        return Wanted(self.format, self.separator, has_header=True)
