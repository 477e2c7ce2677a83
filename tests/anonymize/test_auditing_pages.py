"""The page on query auditing: its examples run and print what the text says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "anonymize" / "auditing.md"


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(first, "auditing.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "[0, 1] answered",
        "[1, 2] answered",
        "[0, 2] denied: disclosure",
        "[2, 3] answered",
        "max of 0 and 1: disclosure",
        "max after a sum: class",
    ]
    exec(compile(second, "auditing.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[Pinned(record=0, low=0.0, high=1.0), Pinned(record=1")
