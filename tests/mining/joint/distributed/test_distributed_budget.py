"""All releases of a run together keep (ε, δ), and hardly less than it: the sums are done again from the noise alone."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from jobs.kinds.charge import charge
from jobs.spec.job import JobSpec
from ldp.accounting.concentrated import discreteness, rdp_epsilon, skellam_rdp, zcdp_epsilon
from ldp.accounting.skellam import Skellam
from link.errors import ConfigurationError
from mining.joint.distributed.budget import (
    ROWS_SHARE,
    SELECTION_SHARE,
    SumNoise,
    dimensions,
    drawn_contributions,
    given_contributions,
    length_noise,
    rows_noise,
    selection,
    shares,
    sizes_noise,
    spent,
)
from mining.joint.distributed.parameters import LONGEST, DistributedMining, NoiseLaw
from mining.joint.distributed.row_sizes import MOST_CLASSES
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.turn(3)

TASK = DistributedMining(Decimal(2), Decimal("1e-6"), Decimal("0.01"), ("a", "b"), catalogue=("x", "y"))


@st.composite
def tasks(draw: st.DrawFn, noise: NoiseLaw) -> tuple[DistributedMining, int]:
    parties = draw(st.integers(2, 6))
    task = replace(
        TASK,
        epsilon=draw(st.decimals("0.1", "8", places=2)),
        delta=Decimal(1).scaleb(-draw(st.integers(4, 8))),
        noise=noise,
        max_length=draw(st.integers(1, 7)),
        colluding=draw(st.integers(0, parties - 2)),
        catalogue=draw(st.sampled_from([None, ("x",)])),
    )
    return task, parties


def hidden(noise: SumNoise, colluding: int) -> Fraction:
    """The variance that colluders do not know."""
    return noise.variance * (noise.parties - colluding)


def releases(task: DistributedMining, parties: int, most: list[int]) -> list[tuple[SumNoise, int]]:
    lengths = [(length_noise(task, parties, at + 1, m), m) for at, m in enumerate(most)]
    sizes = [(sizes_noise(task, parties, at + 1), 1 if at == 0 else 2) for at in range(len(most))]
    return [(rows_noise(task, parties), 1), *sizes, *lengths]


@given(st.integers(1, LONGEST), st.booleans())
def test_shares_are_all_of_the_budget(longest: int, public: bool) -> None:
    task = replace(TASK, max_length=longest, catalogue=("x",) if public else None)
    given_out = shares(task)
    assert len(given_out) == longest
    assert min(given_out) > 0
    assert sum(given_out) + ROWS_SHARE + (0 if public else SELECTION_SHARE) == 1


@settings(max_examples=30)
@given(tasks("skellam"))
def test_noise_can_be_drawn_up_to_so_many_contributions(case: tuple[DistributedMining, int]) -> None:
    task, parties = replace(case[0], delta=Decimal("1e-6")), case[1]  # of a smaller one, Skellam noise may be refused
    most = drawn_contributions(task, parties, task.max_length)
    assert length_noise(task, parties, task.max_length, math.floor(most * (1 - 1e-9))).variance <= Skellam.largest
    assert drawn_contributions(replace(task, noise="discrete-gaussian"), parties, 1) == math.inf


def test_noise_is_made_for_the_histograms_of_sizes_where_these_have_more_sums_than_candidates() -> None:
    assert dimensions(replace(TASK, max_candidates=1)) == 2 * MOST_CLASSES


@examples(5, 30)
@given(tasks("discrete-gaussian"), st.data())
def test_gaussian_releases_keep_the_budget(case: tuple[DistributedMining, int], data: st.DataObject) -> None:
    task, parties = case
    most = [data.draw(st.integers(1, 1000)) for _ in range(task.max_length)]
    rho = 0.0
    for noise, m in releases(task, parties, most):
        tau = discreteness(float(noise.variance), parties - task.colluding)
        central = m / float(hidden(noise, task.colluding))
        rho += (math.sqrt(central) + tau * math.sqrt(task.max_candidates)) ** 2 / 2
    delta, chosen = float(task.delta), selection(task, parties)
    if chosen is not None:
        rho += chosen.most / (2 * float(chosen.variance))
        delta /= 2
    assert zcdp_epsilon(rho, delta) <= float(task.epsilon)
    if min(float(noise.variance) for noise, _ in releases(task, parties, most)) > 4:
        assert zcdp_epsilon(rho, delta) > 0.999 * float(task.epsilon)


@settings(max_examples=15)
@given(tasks("skellam"), st.data())
def test_skellam_releases_keep_the_budget(case: tuple[DistributedMining, int], data: st.DataObject) -> None:
    task, parties = case
    most = [data.draw(st.integers(1, 1000)) for _ in range(task.max_length)]
    try:
        parts, chosen = releases(task, parties, most), selection(task, parties)
    except ConfigurationError:
        reject()  # the tables of the noise are not exact enough for so small a delta

    def curve(order: int) -> float:
        total = sum(skellam_rdp(order, float(hidden(noise, task.colluding)), m, math.sqrt(m)) for noise, m in parts)
        return total + (0 if chosen is None else order * chosen.most / (2 * float(chosen.variance)))

    assert rdp_epsilon(curve, float(task.delta) / (1 if chosen is None else 2)) <= float(task.epsilon)


@settings(max_examples=20)
@given(tasks("discrete-gaussian"))
def test_an_item_of_one_record_is_hardly_ever_named(case: tuple[DistributedMining, int]) -> None:
    """The exact probability that one of M counts of 1 passes is at most δ', and with a threshold 3 lower it is more."""
    task, parties = case
    chosen = selection(replace(task, catalogue=None), parties)
    assert chosen is not None
    x = np.arange(-(1 << 16), 1 << 16, dtype=np.float64)
    weights = np.exp(-(x**2) / (2 * float(chosen.variance)))

    def passing(threshold: int) -> float:
        tail = float(weights[x >= threshold - 1].sum() / weights.sum())
        return -math.expm1(chosen.most * math.log1p(-tail))

    half = float(task.delta) / 2
    assert passing(chosen.threshold) <= half
    assert passing(chosen.threshold - 3) > half or chosen.variance < 100


def test_noise_of_colluders_counts_for_nothing() -> None:
    alone = length_noise(TASK, 3, 1, 20)
    for colluding in (1, 2):
        more = length_noise(replace(TASK, colluding=colluding), 3, 1, 20)
        assert float(hidden(more, colluding)) == pytest.approx(float(hidden(alone, 0)), rel=1e-3)
        assert more.sigma == pytest.approx(alone.sigma * math.sqrt(3 / (3 - colluding)), rel=1e-3)


@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
def test_the_variance_of_all_shares_is_as_stated(noise: NoiseLaw) -> None:
    """40,000 sums of three shares: the sum of squares by σ² is chi-square, 10^-9 of it beyond 6.1 deviations."""
    law, size = length_noise(replace(TASK, noise=noise, colluding=1), 3, 2, 20), 40_000
    total = sum(law.share(size, Randomness.from_seed(seed)) for seed in range(3))
    assert abs(float((total**2).sum()) / law.sigma**2 - size) < 6.1 * math.sqrt(2 * size)


def test_contributions_that_the_job_says() -> None:
    assert [given_contributions(replace(TASK, contributions=(7, 3)), length) for length in (1, 2, 3)] == [7, 3, 3]
    assert given_contributions(TASK, 1) is None


def test_skellam_needs_a_delta_that_its_tables_leave() -> None:
    with fails("E100"):
        spent(replace(TASK, noise="skellam", delta=Decimal("1e-12")), 3)


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-9", "1e-38"])
def test_skellam_noise_has_an_end(epsilon: str) -> None:
    with fails("E100"):
        spent(replace(TASK, noise="skellam", epsilon=Decimal(epsilon)), 3)


@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
@pytest.mark.parametrize("epsilon", ["0.1", "2", "3.3"])
def test_no_more_is_spent_than_charged(noise: str, epsilon: str) -> None:
    contents = {
        "job": {"name": "x", "task": "itemsets", "parties": ["a", "b", "c"], "dataset": "d"},
        "itemsets": {"min_support": 5},
        "privacy": {"model": "distributed", "epsilon": epsilon, "delta": "1e-6", "noise": noise},
    }
    charged = charge(JobSpec.model_validate(contents))
    cost = spent(replace(TASK, epsilon=Decimal(epsilon), noise=noise), 3)
    assert (cost.epsilon, cost.delta) == (float(charged.epsilon or 0), float(charged.delta or 0))
    assert (cost.model, cost.local_epsilon, cost.n) == (charged.model, charged.local_epsilon, None)
