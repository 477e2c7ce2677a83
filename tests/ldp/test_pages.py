"""The pages on local privacy: their examples run, and their figures are those of the code."""

from __future__ import annotations

import importlib
import math
import pathlib
import re

import numpy as np
import pytest

from ldp.accounting.batches import Batch
from ldp.accounting.composition import Guarantee, optimal
from ldp.accounting.concentrated import gaussian_sigma, zcdp_rho, zcdp_simple_epsilon
from ldp.accounting.shuffling import amplified_epsilon
from ldp.blending.curator import Curator
from ldp.choice import choose
from ldp.consistency import METHODS
from ldp.reconstruction.decision_tree import RECONSTRUCTIONS
from ldp.reconstruction.distribution import METHODS as ITERATIONS
from ldp.reconstruction.distribution import RULES
from ldp.reconstruction.noise import GaussianNoise, LaplaceNoise, UniformNoise
from ldp.registry import oracle
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.privset import PrivSet
from ldp.sets.select_a_size import SelectASize
from ldp.sets.wheel import Wheel
from tests.examples import in_turn
from tests.pages import printed

pytestmark = pytest.mark.turn(6)

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ldp"
SHUFFLING, NOISE = ((PAGES / f"{name}.md").read_text() for name in ("shuffling-accounting", "central-noise"))


EXAMPLES = """
    index frequency-oracles choosing sketches heavy-hitters context-aware attacks auditing numeric multidimensional
    learning post-processing reconstruction set-mechanisms blending shuffling-accounting central-noise longitudinal
    rappor sets streams
"""


@pytest.mark.turn(5)
@pytest.mark.parametrize("page", EXAMPLES.split())
def test_examples_run(page: str) -> None:
    assert all(printed(PAGES / f"{page}.md"))


@pytest.mark.costly
def test_the_table_of_mechanisms_is_true() -> None:
    rows = re.findall(r"^\| (.*?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", SHUFFLING, re.MULTILINE)
    assert len(rows) == 9
    for title, *told in in_turn(rows, 3):
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


def test_the_table_of_choices_is_true() -> None:
    row = re.compile(r"^\| ([\d,]+) \| ([\d.]+) \|([^|]*)\| `(\w+)` \| ([\d.]+)·√n \| (\d+) byte", re.MULTILINE)
    rows = row.findall((PAGES / "choosing.md").read_text())
    assert len(rows) == 8
    for d, epsilon, others, name, deviation, size in rows:
        choice = choose(
            int(d.replace(",", "")),
            float(epsilon),
            n=10_000_000 if "users" in others else None,
            max_report_bytes=4 if "bytes" in others else None,
        )
        assert choice.oracle.name == name
        assert choice.oracle.report_bytes == int(size)
        assert f"{deviation}·√n" in choice.reason


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


def test_the_table_of_variances_of_sets_is_true() -> None:
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
