"""Runs the examples of pages."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[str]:
    """The blocks of Python on a page, of which there is one at least."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert found
    return found


def printed(page: Path) -> list[list[str]]:
    """The lines that each example of a page prints."""
    lines = []
    for example in examples(page):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(example, page.name, "exec"), {})
        lines.append(out.getvalue().splitlines())
    return lines
