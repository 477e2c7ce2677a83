"""The examples of the pages on tables, hierarchies and models run and print what they say."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "anonymize"


@pytest.mark.parametrize("page", ["tables", "hierarchies", "models"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        printed = capsys.readouterr().out.splitlines()
        assert printed
        for promised in re.findall(r"^print\(.*\)  # (?:\(level, label\): )?(.*)$", example, re.MULTILINE):
            assert promised in printed
