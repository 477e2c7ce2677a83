"""Sketches: check values, collisions, and what is reported given the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.oracles.sketches import CountMeanSketch, FastLocalHashing, HadamardCountMeanSketch, Sketch
from ldp.oracles.unary_encoding import SymmetricUnaryEncoding
from ldp.registry import oracle
from link.errors import ConfigurationError
from tests.errors import fails
from tests.ldp.contract import check_estimates

pytestmark = pytest.mark.turn(3)

SKETCHES = (FastLocalHashing, CountMeanSketch, HadamardCountMeanSketch)


@pytest.mark.parametrize(
    ("sketch", "missing", "held"),
    [
        (CountMeanSketch(50, 1.0, buckets=16), 4.524137, 4.457470),
        (HadamardCountMeanSketch(50, 1.0, buckets=16), 5.323421, 4.190088),
        (CountMeanSketch(50, 1.0, buckets=1024), 3.926339, 3.925361),
        (HadamardCountMeanSketch(50, 1.0, buckets=1024), 4.691853, 3.689898),
        (FastLocalHashing(50, 1.0), 3.691655, 4.910259),
    ],
)
def test_check_values_before_collisions(sketch: Sketch, missing: float, held: float) -> None:
    alone = super(Sketch, sketch).variance
    assert alone(np.zeros(50), 1)[0] == pytest.approx(missing, abs=2e-6)
    assert alone(np.eye(50)[0], 1)[0] == pytest.approx(held, abs=2e-6)


@pytest.mark.parametrize("kind", SKETCHES)
def test_collisions_are_part_of_the_variance(kind: type[Sketch]) -> None:
    """With few functions most of the variance is from collisions, and the formula still holds."""
    sketch = kind(10, 3.0, functions=4, buckets=8)
    counts = np.array([3000, 0, 150, 90, 30, 20, 10, 0, 5, 1])
    few = sketch.variance(counts, counts.sum())
    assert few[1] > 3 * sketch.with_params(functions=4096).variance(counts, counts.sum())[1]
    check_estimates(sketch, counts, Randomness.from_seed(11), runs=800, normal=False)


@pytest.mark.parametrize("kind", SKETCHES)
def test_the_stated_variance_is_not_inflated_by_noise(kind: type[Sketch]) -> None:
    sketch, n, d = kind(2000, 1.0, functions=64), 20_000, 2000
    values = np.repeat(np.arange(4), n // 4)
    estimate = Aggregator(sketch).add(sketch.privatise(values, Randomness.from_seed(2))).estimate()
    true = sketch.variance(np.bincount(values, minlength=d), n)
    assert estimate.variances[100:].mean() == pytest.approx(true[100:].mean(), rel=0.25)


@pytest.mark.parametrize("kind", SKETCHES)
def test_some_values_can_be_looked_up_alone(kind: type[Sketch]) -> None:
    sketch, codes = kind(300, 1.0, functions=32), np.array([299, 0, 7, 7])
    tally = sketch.tally(sketch.privatise(np.arange(300), Randomness.from_seed(1)))
    assert np.array_equal(sketch.unbiased_of(codes, tally, 300), sketch.unbiased(tally, 300)[codes])


def test_a_count_mean_sketch_sends_a_bucket_by_unary_encoding() -> None:
    sketch, unary = CountMeanSketch(5, 1.0, functions=1, buckets=8), SymmetricUnaryEncoding(8, 1.0)
    assert sketch.exact_epsilon == unary.exact_epsilon
    buckets = sketch.family.buckets(sketch.seeds[0], np.arange(5))
    n = 50_000
    for value in range(5):
        bits = sketch.privatise(np.full(n, value), Randomness.from_seed(value)).fields[1]
        sums = np.unpackbits(bits, axis=1, bitorder="little").sum(axis=0) / n
        expected = np.where(np.arange(8) == buckets[value], float(unary.p), float(unary.q))
        assert np.abs(sums - expected).max() < 6 * 0.5 / np.sqrt(n)


def test_clients_and_servers_of_other_functions_do_not_mix() -> None:
    one, two = (HadamardCountMeanSketch(100, 1.0, salt=salt) for salt in (0, 1))
    assert one.fingerprint != two.fingerprint
    again = HadamardCountMeanSketch(100, 1.0)
    assert np.array_equal(one.seeds, again.seeds)
    assert not np.array_equal(one.seeds, two.seeds)


@pytest.mark.parametrize("parameters", [{"functions": 0}, {"buckets": 1}, {"functions": 1 << 30}])
@pytest.mark.parametrize("kind", SKETCHES)
def test_wrong_sizes_are_refused(kind: type[Sketch], parameters: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        kind(10, 1.0, **parameters)


def test_a_hadamard_sketch_needs_a_power_of_two() -> None:
    with fails("E100"):
        HadamardCountMeanSketch(10, 1.0, buckets=100)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("flh", {"epsilon": 16.0}),
        ("flh", {"epsilon": 1.0, "functions": 1 << 24, "buckets": 32}),
        ("cms", {"functions": 1 << 20, "buckets": 1 << 12}),
    ],
)
def test_a_table_that_no_machine_holds_is_refused_in_a_sentence(name: str, parameters: dict[str, Any]) -> None:
    given = {"epsilon": 1.0, **parameters}
    with fails("E100"):
        oracle(name, 2, **given)
