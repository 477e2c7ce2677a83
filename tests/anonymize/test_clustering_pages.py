"""The examples of the pages on clustering, condensation, replacement and uncertain records run."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "anonymize"


@pytest.mark.parametrize(
    "page", ["microaggregation", "sensitive-levels", "condensation", "identity-replacement", "uncertain-records"]
)
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out
