"""The examples of the pages on frequency oracles run, and their figures are those of the code."""

from __future__ import annotations

import importlib
import math
import pathlib
import re

import numpy as np
import pytest

from ldp.registry import oracle

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"


@pytest.mark.parametrize("page", ["index", "frequency-oracles"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out


def test_the_table_of_variances_is_true() -> None:
    text = (PAGES / "frequency-oracles.md").read_text()
    table = re.search(
        r"^(\| \| `grr`.*\|)\n.*\n\| variance, by n (.*)\n\| error of a count for 10⁶ users (.*)$", text, re.M
    )
    assert table is not None
    names, variances, errors = (
        [cell.strip(" `,").replace(",", "") for cell in row.strip("| ").split("|")] for row in table.groups()
    )
    assert len(names) == len(variances) == len(errors) == 9
    n, d = 1_000_000, 64
    for name, variance, error in zip(names, variances, errors, strict=True):
        found = oracle(name, d, 1.0)
        # Of a value that nobody has, while all others are as common: Hadamard response depends on them.
        counts = np.full(d, n / (d - 1))
        counts[0] = 0
        exact = found.variance(counts, n)[0]
        assert math.isclose(float(variance), exact / n, rel_tol=2e-4), name
        assert math.isclose(float(error), math.sqrt(exact), rel_tol=5e-4), name


def test_the_table_of_people_is_true() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) % \|$", (PAGES / "index.md").read_text(), re.MULTILINE)
    assert len(rows) == 5
    for people, deviation, share in ((float(cell.replace(",", "")) for cell in row) for row in rows):
        exact = math.sqrt(oracle("oue", 100, 1.0).variance(np.zeros(100), int(people))[0])
        assert math.isclose(deviation, exact, rel_tol=0.01)
        assert math.isclose(share, 300 * exact / people, rel_tol=0.02)


def test_the_modules_of_the_literature_exist() -> None:
    text = (PAGES / "index.md").read_text()
    table = text[text.index("## What of the literature is here") : text.index("## The two halves")]
    named = re.findall(r"`(ldp[\w.]+)`", table)
    assert len(named) > 30
    for module in named:
        importlib.import_module(module)
