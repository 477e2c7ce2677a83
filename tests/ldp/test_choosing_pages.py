"""The examples of the pages on choosing, sketches and heavy hitters run, and what the pages promise holds."""

from __future__ import annotations

import pathlib
import re

import pytest

from ldp.choice import choose

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"


@pytest.mark.parametrize("page", ["choosing", "sketches", "heavy-hitters"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out


def test_the_table_of_choices_is_true() -> None:
    row = re.compile(r"^\| ([\d,]+) \| ([\d.]+) \|([^|]*)\| `(\w+)` \| ([\d.]+)·√n \| (\d+) byte", re.MULTILINE)
    rows = row.findall((PAGES / "choosing.md").read_text())
    assert len(rows) == 8
    for d, epsilon, others, name, deviation, size in rows:
        choice = choose(
            int(d.replace(",", "")),
            float(epsilon),
            n=10_000_000 if "users" in others else None,
            max_report_bytes=4 if "bytes" in others else None,
        )
        assert choice.oracle.name == name
        assert choice.oracle.report_bytes == int(size)
        assert f"{deviation}·√n" in choice.reason
