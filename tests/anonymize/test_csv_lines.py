"""Lines of `release.csv` are those of the csv module."""

from __future__ import annotations

import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonymize import csv_lines
from anonymize.columns import text_of
from link.files.spreadsheet import write_rows

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6) | st.sampled_from(
    ["=1", "", '"', "a,b", "\n", " x"]
)


@given(data=st.data(), width=st.integers(1, 3))
def test_lines_are_written_as_the_csv_module_does(data: st.DataObject, width: int) -> None:
    names = data.draw(st.lists(TEXTS, min_size=width, max_size=width, unique=True))
    cells = data.draw(st.lists(st.tuples(*([TEXTS | st.none()] * (width - 1)), st.floats()), max_size=5))
    columns = list(zip(*cells, strict=True)) or [()] * width
    types = [pa.string()] * (width - 1) + [pa.float64()]
    table = pa.table([pa.array(each, kind) for each, kind in zip(columns, types, strict=True)], names)
    expected = io.StringIO()
    write_rows(expected, [names])
    write_rows(expected, [["" if cell is None else text_of(cell) for cell in row] for row in cells])
    assert csv_lines.header(names) + "".join(csv_lines.lines(table).to_pylist()) == expected.getvalue()
