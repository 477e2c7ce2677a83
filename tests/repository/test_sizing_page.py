"""The tables of the page on sizes are what its formulas and coefficients give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.mining.sizing import columns, counting, markdown, protocols
from benchmarks.table import Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks" / "sizing.md"


@pytest.mark.parametrize("table", [counting, protocols, columns])
def test_the_page_holds_the_table(table: Callable[[], Table]) -> None:
    assert markdown(table()) in PAGE.read_text(encoding="utf-8")
