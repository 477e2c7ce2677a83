"""A table of measurements: printed for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

Cell = str | int | float | None


@dataclass
class Table:
    """Rows of measurements with a caption.

    Attributes:
        title: What was measured.
        columns: Heads; a unit stands in the head.
        rows: Cells; None where a tool is absent.
        notes: What a reader must know to judge the numbers.
    """

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Appends a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"a row of '{self.title}' has {len(self.columns)} cells, not {len(cells)}")
        self.rows.append(cells)

    def show(self, console: Console) -> None:
        """Prints the table and its notes."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for number, head in enumerate(self.columns):
            table.add_column(head, justify="left" if number == 0 else "right")
        for row in self.rows:
            table.add_row(*map(_text, row))
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", style="dim")
        console.print()

    def as_data(self) -> dict[str, Any]:
        """The table as JSON values."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": self.notes}


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.3g}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
