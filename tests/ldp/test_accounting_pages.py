"""The pages on accounting: examples run, and figures are those of the code."""

from __future__ import annotations

import math
import pathlib
import re

import pytest

from ldp.accounting.batches import Batch
from ldp.accounting.composition import Guarantee, optimal
from ldp.accounting.concentrated import gaussian_sigma, zcdp_rho, zcdp_simple_epsilon
from ldp.accounting.shuffling import amplified_epsilon
from ldp.registry import oracle

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"
SHUFFLING, NOISE = ((PAGES / f"{name}.md").read_text() for name in ("shuffling-accounting", "central-noise"))


@pytest.mark.parametrize("page", [SHUFFLING, NOISE], ids=["shuffling", "noise"])
def test_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(example, "page", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) >= 5


def test_the_table_of_mechanisms_is_true() -> None:
    rows = re.findall(r"^\| (.*?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", SHUFFLING, re.MULTILINE)
    assert len(rows) == 9
    for title, *told in rows:
        name, *size = re.findall(r"`(\w+)`|(\d+) values", title)
        d = int(size[0][1]) if size else 1000
        settings = ((1.0, 10_000, 1e-6), (2.0, 10_000, 1e-6), (1.0, 1_000_000, 1e-8))
        for (epsilon, n, delta), each in zip(settings, told, strict=True):
            local = epsilon if name[0] == "clone" else oracle(name[0], d, epsilon)
            assert f"{amplified_epsilon(local, n, delta):.6f}" == each, (title, epsilon, n)


def test_the_table_of_batches_is_true() -> None:
    for batch in (Batch(1.0, 10_000), Batch(1.0, 10_000, 0.2), Batch(1.0, 1_000)):
        # Off by less than 2·10^-6 of itself, and printed with as many digits as that leaves.
        told = [float(each) for each in re.findall(r"\| (0\.\d{6}) \|$", SHUFFLING, re.MULTILINE)]
        assert min(abs(batch.guarantee(1e-6).epsilon - each) for each in told) < 1e-6


def test_the_figures_of_composition_are_true() -> None:
    assert f"have ε = {optimal([Guarantee(0.1, 1e-9)] * 100, 1e-6).epsilon:.3f} together" in SHUFFLING


def test_the_table_of_noise_is_true() -> None:
    rows = dict(re.findall(r"^\| ([^|]*?) \| ([\d. |]+) \|$", NOISE, re.MULTILINE))
    told = {title.split(",")[-1]: [float(each) for each in cells.split(" | ")] for title, cells in rows.items()}
    assert len(told) >= 4
    columns = list(zip(*(cells for cells in told.values() if len(cells) == 3), strict=True))
    for epsilon, (simple, best, sigma, exact) in zip((1.0, 2.0, 4.0), columns, strict=True):
        assert f"{zcdp_rho(epsilon, 1e-6, zcdp_simple_epsilon):.7f}" == f"{simple:.7f}"
        assert f"{zcdp_rho(epsilon, 1e-6):.7f}" == f"{best:.7f}"
        assert f"{1 / math.sqrt(2 * zcdp_rho(epsilon, 1e-6)):.6f}" == f"{sigma:.6f}"
        assert f"{gaussian_sigma(epsilon, 1e-6):.6f}" == f"{exact:.6f}"
