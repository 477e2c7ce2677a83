"""The examples of the pages on post-processing and reconstruction run, and their figures are those of the code."""

from __future__ import annotations

import pathlib
import re

import pytest

from ldp.consistency import METHODS
from ldp.reconstruction.decision_tree import RECONSTRUCTIONS
from ldp.reconstruction.distribution import METHODS as ITERATIONS
from ldp.reconstruction.distribution import RULES
from ldp.reconstruction.noise import GaussianNoise, LaplaceNoise, UniformNoise

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"


@pytest.mark.parametrize("page", ["post-processing", "reconstruction"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})
        assert capsys.readouterr().out


def test_every_method_is_told_of() -> None:
    text = (PAGES / "post-processing.md").read_text()
    assert all(f"`{method}`" in text for method in METHODS)
    text = (PAGES / "reconstruction.md").read_text()
    assert all(f"| `{name}` |" in text for name in (*ITERATIONS, *RULES))
    assert all(name in text for name in RECONSTRUCTIONS)


def test_the_table_of_privacy_is_true() -> None:
    text = (PAGES / "reconstruction.md").read_text()
    noises = (UniformNoise(1.0), GaussianNoise(1.0), LaplaceNoise(1.0))
    rows = re.findall(r"^\| (?:width of the|of the) ([\d.]+) % interval \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 3
    for confidence, cells in rows:
        told = [float(cell.split("·")[0]) for cell in cells.split("|")]
        assert told == pytest.approx([noise.interval_width(float(confidence) / 100) for noise in noises], rel=1e-3)
    power = re.search(r"^\| entropy power .*?\| (.*) \|$", text, re.MULTILINE)
    assert power is not None
    told = [float(cell.split("·")[0]) for cell in power[1].split("|")]
    assert told == pytest.approx([noise.privacy for noise in noises], rel=1e-3)
