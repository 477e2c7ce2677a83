"""The examples of the pages on context-aware mechanisms, attacks and auditing run."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"


@pytest.mark.parametrize("page", ["context-aware", "attacks", "auditing"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out
