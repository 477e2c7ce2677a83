"""The example of the page on streams runs, and its figures are those of the code."""

from __future__ import annotations

import itertools
import pathlib
import re
from fractions import Fraction

import pytest

from ldp.registry import oracle
from ldp.streams import allocation
from ldp.streams.composition import amplified, before_sampling, covered
from ldp.streams.dissimilarity import mean_variance
from ldp.streams.methods import METHODS, stream_method
from ldp.streams.sampled import Sampled

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "ldp" / "streams.md").read_text()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(example, "streams", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert "as of day 0" in lines[0]


def test_the_table_of_parts_is_true() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", PAGE, re.MULTILINE))
    for name in METHODS:
        phase = stream_method(name, 5, 1.0, 20).plan(100_000)
        assert phase is not None
        told = rows[name].split(";")[0]
        if name.startswith("lp"):
            assert told == f"{int(phase.share * 100_000):,}"
        else:
            assert re.search(rf"\b{float(phase.epsilon):.3g}\b", told), name


def test_the_series_are_true() -> None:
    for name, p in (("geometric", 0.5), ("taylor", None), ("telescoping", None), ("p_series", 2.0), ("p_series", 1.5)):
        found = getattr(allocation, name)(1.0, *([] if p is None else [p]))
        text = ", ".join(f"{float(term):.3f}".rstrip("0") for term in itertools.islice(found, 3))
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
        assert text in row


def test_the_figures_are_true() -> None:
    for d, epsilon, n, told in ((5, 0.05, 100_000, "0.0155"), (5, 1.0, 5_000, "0.000457")):
        assert f"{mean_variance(oracle('grr', d, epsilon), n):.3g}" == told
        assert told in PAGE
    split = allocation.splitting("oue", 100_000, 1.0, 4)
    assert f"{split.budget:.1f} with ε/4 from all, and {split.users:.1f} with" in PAGE.replace("\n", " ")
    assert f"`amplified(1.0, 0.1)` is {amplified(1.0, 0.1):.3f}" in PAGE
    assert f"`before_sampling(1.0, 0.1)` = {before_sampling(1.0, 0.1):.2f}" in PAGE


def test_the_figures_of_secret_sampling_are_true() -> None:
    text = PAGE.replace("\n", " ")
    assert f"`covered(2.70, 1/8, 1024)` is {covered(2.70, Fraction(1, 8), 1024):.2f}" in text
    ratios = []
    for g in (Fraction(1, 2), Fraction(1, 8)):
        sampled, direct = Sampled.for_budget("olh", 1024, 1.0, g), oracle("olh", 1024, 1.0)
        ratios.append(mean_variance(sampled, 1) / mean_variance(direct, 1))
        same = mean_variance(Sampled.for_budget("grr", 1024, 1.0, g), 1) / mean_variance(oracle("grr", 1024, 1.0), 1)
        assert same == pytest.approx(1)
    assert f"pays {ratios[0]:.1f} times the variance for g = 1/2, and {ratios[1]:.1f} times for g = 1/8" in text
