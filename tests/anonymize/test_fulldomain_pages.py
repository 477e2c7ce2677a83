"""The examples of the pages on full-domain recoding and Mondrian run."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "anonymize"


@pytest.mark.parametrize(("page", "printed"), [("full-domain", "'zip': 3}"), ("mondrian", "[21, 25]")])
def test_examples_run(page: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
    assert printed in capsys.readouterr().out
