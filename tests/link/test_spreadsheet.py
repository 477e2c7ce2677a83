"""No cell that comine writes is taken for a formula, whatever separator a spreadsheet takes, and nothing is lost."""

from __future__ import annotations

import csv
import io
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from link.files.spreadsheet import as_named, as_text, quoted, write_rows

HOSTILE = ["=", "+", "-", "@", "\t", "\r", "\n", ";", ",", " ", "'", '"', "＝", "\ufeff", "\u200b", "\xa0", "\x00"]
PIECES = [*HOSTILE, "1", "5", "e", ".", "%", "a", "cmd|' /C calc'!A0", "SUM(A1)", "HYPERLINK"]
TEXT = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), max_size=8).map("".join)
PLAIN_NUMBER = re.compile(r"[+-]?[0-9.,eE%+ ;\t\r\n-]*")


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet could run a cell, by another way than the code's: what is seen of it begins with a sign."""
    seen = "".join(c for c in cell if unicodedata.category(c) not in ("Cc", "Cf", "Zs", "Zl", "Zp"))
    if not seen or seen[0] not in "=+-@＝＋－＠":
        return False
    return PLAIN_NUMBER.fullmatch(cell.strip(" ")) is None or re.search(r"[0-9 ][+-]", cell.strip(" ")) is not None


def cells_of(line: str) -> list[str]:
    """The cells into which any separator might cut a text."""
    return re.split(r"[;\t\r\n]", line)


@given(TEXT)
@example("=cmd|' /C calc'!A0")
@example("-2+3+cmd|' /C calc'!A0")
@example("+1-1")
@example("x;=1+1")
@example("\t=1+1")
@example("\ufeff=1+1")
@example("a\n@SUM(A1)")
@example("'=x")
@example("+1\tcmd|' /C calc'!A0")
@example("-5;cmd|' /C calc'!A0")
@example("+\t")
def test_no_part_of_a_cell_is_a_formula_and_the_text_comes_back(value: str) -> None:
    cell = as_text(value)
    assert not any(map(is_formula, cells_of(cell)))
    assert cell[:1] not in ("\t", "\r", "\n")
    assert as_named(cell) == value


@pytest.mark.parametrize(
    "value",
    [
        *("-5", "+49 30 1234567", "+491701234567", "-1.5e-7", "-1,5", "-1.234.567,8", "-5%", "-", "1;-5;+3", "5", ""),
        *("a-b", "x=y", "no", "<=50K", "[-5, 3)", "2020-01-01", "a, -b", "item=-1", "'quoted'", "O'Neil"),
    ],
)
def test_numbers_and_what_no_spreadsheet_runs_stay_as_they_are(value: str) -> None:
    assert as_text(value) == value


@given(st.lists(st.lists(TEXT, min_size=2, max_size=3), max_size=4))
def test_rows_come_back(rows: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    write_rows(file, rows)
    file.seek(0)
    assert [[as_named(cell) for cell in row] for row in csv.reader(file)] == rows
    text = "".join(",".join(map(quoted, row)) + "\n" for row in rows)
    assert [[as_named(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))] == rows


def test_numbers_are_written_as_numbers() -> None:
    file = io.StringIO()
    write_rows(file, [["a", -5, -0.5, None, float("-inf")]])
    assert file.getvalue() == "a,-5,-0.5,,-inf\n"
