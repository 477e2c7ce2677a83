"""Simulated collections: errors as theory says, whatever the mechanism, and nothing lost on the way to the files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import coordinator.frequency.simulation
from coordinator.frequency.folder import document, holds_earlier, write_folder
from coordinator.frequency.report import report
from coordinator.frequency.simulation import Request, Simulation, simulate
from coordinator.frequency.values import Collection, load_collection
from ldp.domain import Domain
from ldp.registry import ORACLES
from link.errors import ConfigurationError
from tests.errors import fails
from tests.jobs.report.pages import taken_apart

pytestmark = pytest.mark.turn(3)

ERROR = 1e-7  # probability that a statistical test of a right simulation fails
COUNTS = np.array([900, 500, 300, 150, 80, 40, 20, 5, 3, 2, 0, 0])


@pytest.fixture
def collection() -> Collection:
    d = len(COUNTS)
    return Collection(Domain(d, [f"value {place}" for place in range(d)]), np.repeat(np.arange(d), COUNTS), True)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "hr", "ss", "flh"])
def test_errors_and_intervals_are_as_theory_says(collection: Collection, name: str) -> None:
    runs = 150
    outcome = simulate(Request((name,), 1.0, runs=runs, seed=2), collection).outcomes[0]
    # With fully dependent errors of values a run is one observation; the bound holds for that worst case.
    low, high = (math.sqrt(stats.chi2.ppf(tail, runs) / runs) for tail in (ERROR, 1 - ERROR))
    assert low < outcome.errors.ratio < high
    covered = outcome.errors.coverage * runs * len(COUNTS)
    assert 0.9 < covered / (runs * len(COUNTS)) <= 1
    assert outcome.errors.mean_absolute <= outcome.errors.rmse <= outcome.errors.largest


def test_chance_is_the_deviation_of_the_ratio(collection: Collection) -> None:
    ratios, chances = [], set()
    for seed in range(200):
        errors = simulate(Request(("oue",), 1.0, seed=seed), collection).outcomes[0].errors
        ratios.append(errors.ratio)
        chances.add(errors.chance)
    (chance,) = chances
    assert 0.8 < np.std(ratios) / chance < 1.2


def test_post_processing_stands_beside_the_raw_estimates(collection: Collection) -> None:
    raw, both = (
        simulate(Request(("oue",), 1.0, seed=1, post_processing=method), collection).outcomes[0]
        for method in (None, "norm-sub")
    )
    assert raw.post_processed is None
    assert np.array_equal(raw.estimate.counts, both.estimate.counts)
    assert both.post_processed is not None
    assert both.post_processed.sum() == pytest.approx(COUNTS.sum())
    assert both.errors.post_processed_rmse is not None
    assert both.errors.post_processed_rmse < both.errors.rmse


@pytest.mark.parametrize("name", ORACLES)
def test_small_batches_lose_nobody(collection: Collection, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator.frequency.simulation, "BATCH_BYTES", 1)
    told = []
    outcome = simulate(Request((name,), 4.0, seed=1), collection, lambda *seen: told.append(seen)).outcomes[0]
    assert told[-1] == (name, COUNTS.sum(), COUNTS.sum())
    assert len(told) > 10
    assert outcome.estimate.n == COUNTS.sum()
    assert outcome.estimate.domain == collection.domain
    z = (outcome.estimate.counts - COUNTS) / outcome.deviations
    assert np.abs(z).max() < 7


def test_runs_of_a_sketch_take_other_functions(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    salts = []
    real = coordinator.frequency.simulation.collected

    def recorded(found, *rest):  # type: ignore[no-untyped-def]
        salts.append(found.get_params()["salt"])
        return real(found, *rest)

    monkeypatch.setattr(coordinator.frequency.simulation, "collected", recorded)
    outcome = simulate(Request(("flh",), 1.0, runs=3, seed=1), collection).outcomes[0]
    assert salts == [0, 1, 2]
    assert outcome.oracle.get_params()["salt"] == 0


def test_the_top_counts_what_is_found_of_it(collection: Collection) -> None:
    assert simulate(Request(("grr",), 16.0, seed=1, top=5), collection).outcomes[0].errors.top_found == 1
    assert simulate(Request(("grr",), 1.0, seed=1, top=500), collection).outcomes[0].errors.top_found == 1


def test_wrong_requests_are_refused_before_any_work(collection: Collection) -> None:
    for wrong in ({"runs": 0}, {"top": 0}, {"confidence": 0.0}, {"confidence": math.nan}, {"post_processing": "x"}):
        with pytest.raises(ConfigurationError):
            Request(("grr",), 1.0, **wrong)  # type: ignore[arg-type]
    with fails("E100"):
        simulate(Request(("grr", "hr"), 1.0, post_processing="mle-apx"), collection)


def test_a_long_value_does_not_fill_the_screen(tmp_path: Path) -> None:
    (tmp_path / "domain").write_text("a\nb\n")
    (tmp_path / "values").write_text(f"a\n{'x' * 10_000}\n")
    with fails("E101") as caught:
        load_collection(tmp_path / "values", tmp_path / "domain")
    assert len(caught.value.message) < 400 + 2 * len(str(tmp_path))


def done(collection: Collection) -> Simulation:
    return simulate(Request(("grr", "flh"), 1.0, runs=2, seed=1, post_processing="norm-mul"), collection)


def test_the_document_tells_parameters_without_the_domain_s_values(collection: Collection) -> None:
    contents = document(done(collection))
    assert contents["mechanisms"][1]["parameters"] == {
        "domain": len(COUNTS),
        "epsilon": 1.0,
        "functions": 4096,
        "buckets": 4,
        "salt": 0,
    }
    assert "value 1" not in str(contents)


def test_the_page_shows_quantiles_that_rise(collection: Collection) -> None:
    data = taken_apart(report(done(collection))).data
    assert data is not None
    assert data["counts"] == sorted(COUNTS.tolist(), reverse=True)
    for each in data["mechanisms"]:
        expected, observed = zip(*each["errors"], strict=True)
        assert list(expected) == sorted(expected)
        assert list(observed) == sorted(observed)
        assert max(map(abs, observed)) < 7


def test_only_an_earlier_simulation_is_one(collection: Collection, tmp_path: Path) -> None:
    write_folder(tmp_path / "out", done(collection))
    assert holds_earlier(tmp_path / "out")
    (tmp_path / "out/oue").write_text("a file with the name of a mechanism")
    assert not holds_earlier(tmp_path / "out")
    (tmp_path / "out/oue").unlink()
    (tmp_path / "out/result.json").unlink()
    assert not holds_earlier(tmp_path / "out")
