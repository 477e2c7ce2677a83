"""The examples of the pages on perturbed sets and on the hybrid model run, and their figures are those of the code."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

from ldp.blending.curator import Curator
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.privset import PrivSet
from ldp.sets.select_a_size import SelectASize
from ldp.sets.wheel import Wheel

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"


@pytest.mark.parametrize("page", ["set-mechanisms", "blending"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out


def test_the_table_of_variances_is_true() -> None:
    text = (PAGES / "set-mechanisms.md").read_text().replace("**", "")
    cell = r"([\d.,]+) / ([\d.,]+), ([\d,]+) B"
    rows = re.findall(rf"^\| ([\d,]+), (\d+), (\d+) \| {cell} \| {cell} \| {cell} \|$", text, re.MULTILINE)
    assert len(rows) == 5
    for row in rows:
        d, m, epsilon, *figures = (float(each.replace(",", "")) for each in row)
        counts = np.zeros(int(d))
        counts[0] = 1
        for place, kind in enumerate((PrivSet, Wheel, PaddingAndSampling)):
            found = kind(int(d), epsilon, int(m))
            held, other = found.variance(counts, 1)[:2]
            assert figures[3 * place : 3 * place + 2] == pytest.approx([other, held], rel=0.02)
            assert figures[3 * place + 2] == found.report_bytes


def test_the_table_of_operators_is_true() -> None:
    text = (PAGES / "set-mechanisms.md").read_text()
    rows = re.findall(r"^\|.*\| \*\*(\d)\*\* \| ([\d.]+) / ([\d.]+) / ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 3
    for epsilon, *figures in rows:
        for k, figure in enumerate(figures, 1):
            found = SelectASize.for_itemsets(100, float(epsilon), 4, k)
            assert float(figure) == pytest.approx(found.variance(k, np.eye(k + 1)[0]), rel=0.02)


def test_the_threshold_that_is_named() -> None:
    (threshold,) = re.findall(r"With ε = 1 and δ = 10⁻⁵, τ is (\d+)\.", (PAGES / "blending.md").read_text())
    assert Curator(1.0, 1e-5).threshold == int(threshold)
