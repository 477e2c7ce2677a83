"""The tables of the page on sizes are what its formulas and coefficients give, and these what was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.mining.coefficients import Coefficients, read, write
from benchmarks.mining.sizing import alignments, coefficients, columns, counting, markdown, protocols
from benchmarks.table import Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks" / "sizing.md"


@pytest.mark.parametrize("table", [coefficients, counting, protocols, columns, alignments])
def test_the_page_holds_the_table(table: Callable[[], Table]) -> None:
    assert markdown(table()) in PAGE.read_text(encoding="utf-8")


def test_coefficients_are_what_each_further_row_costs(tmp_path: Path) -> None:
    def run(rows: int) -> dict[str, object]:
        levels = {"begin": 2e-6, "count pairs": 9e-7, "count triples": 7e-7}
        costs = {level: {"cpu_s": 3.0 + each * rows} for level, each in levels.items()}
        return {**costs, "rows": rows, "disk_bytes": 1000 + 23 * rows, "node_mb": 100 + 5e-4 * rows, "worker_mb": 180.0}

    runs = (run(10_000), run(50_000))
    fitted, speed = Coefficients.fitted(runs, runs), read()[1]
    write(fitted, speed, tmp_path / "coefficients.json")
    assert read(tmp_path / "coefficients.json") == (Coefficients(2e-6, 9e-7, 7e-7, 23, 500, 125e6, 180e6), speed)
