"""Several attributes a user: the corners of Duchi's mechanism, sampled attributes, mixed records."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.certify import satisfies, spent_epsilon
from ldp.mechanism import Channel
from ldp.numeric.attribute_sampling import AttributeSampling
from ldp.numeric.duchi_vector import DuchiVector
from ldp.numeric.interval import Floats
from ldp.numeric.records import Categorical, MixedRecords, Numeric
from ldp.numeric.vectors import SampledVector, VectorEstimate
from link.errors import InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_privacy, check_reports, chi_square_p

pytestmark = pytest.mark.turn(5)

SCHEMA = (Numeric("age", 0, 120), Categorical("colour", ("red", "green", "blue")), Categorical("district", 40))


def corners(d: int) -> Floats:
    """All of {−1, 1}^d, in the order of their bits as numbers."""
    return 2.0 * (np.arange(1 << d)[:, None] >> np.arange(d) & 1) - 1


# -- Duchi's mechanism for several numbers ----------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 16.0])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_no_ratio_of_probabilities_exceeds_epsilon(d: int, epsilon: float) -> None:
    check_privacy(DuchiVector(d, epsilon), tight=1e-7)


def test_check_values() -> None:
    bounds = [float(DuchiVector(d, 1.0).bound) for d in range(1, 7)]
    assert bounds == pytest.approx([2.163953, 3.327907, 4.327907, 4.770542, 5.770543, 5.924651], abs=1e-6)


def test_the_paper_counts_corners_on_the_boundary_twice_and_overspends() -> None:
    d, epsilon = 4, 1.0
    z = corners(d)
    sides = z @ z.T
    near, far = (sides >= 0), (sides <= 0)
    p = math.exp(epsilon) / (math.exp(epsilon) + 1)
    published = p * near / near.sum(axis=1, keepdims=True) + (1 - p) * far / far.sum(axis=1, keepdims=True)
    assert published.sum(axis=1) == pytest.approx(1)
    assert np.log(published.max() / published.min()) == pytest.approx(1.313262, abs=1e-6)
    assert spent_epsilon(DuchiVector(d, epsilon).channel()) == 1.0
    assert 1 / (published @ z)[-1, 0] == pytest.approx(7.934496, abs=1e-6)  # with more noise on top


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_corners_are_unbiased(d: int) -> None:
    mechanism = DuchiVector(d, 0.8)
    for v, row in zip(corners(d), mechanism.channel(), strict=True):
        mean = [sum((p * int(z) for p, z in zip(row, column, strict=True)), Fraction(0)) for column in corners(d).T]
        assert [mechanism.bound * each for each in mean] == v.tolist()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_the_sampler_draws_from_the_channel(d: int) -> None:
    mechanism, n = DuchiVector(d, 1.5), 40_000
    for place in {0, 1, (1 << d) - 1}:
        drawn = mechanism.privatise(np.tile(corners(d)[place], (n, 1)), Randomness.from_seed(place))
        observed = np.bincount(mechanism.outcomes(drawn), minlength=1 << d)
        assert chi_square_p(observed, np.array([float(p) for p in mechanism.channel()[place]]) * n) > ERROR / 3


@pytest.mark.parametrize("d", [2, 9, 40, 1000])
def test_any_number_of_dimensions(d: int) -> None:
    mechanism = DuchiVector(d, 1.0)
    assert 1.0 - 1e-12 < mechanism.exact_epsilon <= 1.0
    assert 0.3 < float(mechanism.bound) ** 2 / d < 12  # variances grow like d, not d²
    values = np.tile(np.linspace(-1, 1, d), (2000, 1))
    found = Aggregator(mechanism).add(mechanism.privatise(values, Randomness.from_seed(d))).estimate()
    z = (found.means - values[0]) / np.sqrt(found.variances)
    assert np.abs(z).max() < stats.norm.isf(ERROR / d / 2)
    assert abs((z**2).sum() - d) < 8 * math.sqrt(2 * d)


# -- sampled attributes -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("d", "epsilon", "k"), [(10, 1.0, 1), (10, 4.0, 1), (10, 10.0, 4), (10, 5.0, 2), (3, 16.0, 3), (1, 16.0, 1)]
)
def test_how_many_attributes_are_told(d: int, epsilon: float, k: int) -> None:
    mechanism = SampledVector(d, epsilon)
    assert mechanism.k == k
    assert Fraction(mechanism.share) * k <= Fraction(epsilon)
    assert epsilon - 1e-8 < mechanism.exact_epsilon <= epsilon


def joint_channel(mechanism: AttributeSampling[Any]) -> Channel:
    """Of all records: each subset of attributes, and each of these attributes' outputs."""
    singles = [component.channel() for component in mechanism.components]
    subsets = list(combinations(range(mechanism.d), mechanism.k))
    return [
        [
            math.prod(ps, start=Fraction(1, len(subsets)))
            for subset in subsets
            for ps in product(*(singles[attribute][record[attribute]] for attribute in subset))
        ]
        for record in product(*(range(len(single)) for single in singles))
    ]


@pytest.mark.parametrize(
    "mechanism",
    [
        SampledVector(3, 1.0, "duchi"),
        SampledVector(3, 5.0, "duchi"),
        SampledVector(2, 16.0, "duchi"),
        MixedRecords([Numeric("x", 0, 1), Categorical("c", 3)], 1.0, "duchi"),
        MixedRecords([Numeric("x", 0, 1), Categorical("c", 3), Categorical("g", 2)], 7.6, "duchi", "grr"),
    ],
    ids=str,
)
def test_whole_reports_keep_epsilon(mechanism: AttributeSampling[Any]) -> None:
    channel = joint_channel(mechanism)
    assert satisfies(channel, mechanism.epsilon)
    assert spent_epsilon(channel) == pytest.approx(mechanism.exact_epsilon, rel=1e-12)
    assert mechanism.exact_epsilon > mechanism.epsilon - 1e-6


def test_every_set_of_attributes_is_equally_likely_whatever_the_record_is() -> None:
    mechanism, n = SampledVector(5, 5.0), 50_000
    for record in (-np.ones(5), np.array([1, -1, 0, 0.3, 1])):
        chosen = mechanism.privatise(np.tile(record, (n, 1)), Randomness.from_seed(1)).fields[0].astype(np.int64)
        observed = np.bincount(chosen[:, 0] * 5 + chosen[:, 1], minlength=25)
        expected = np.array([n / 10 if a < b else 0 for a in range(5) for b in range(5)])
        assert observed[expected == 0].sum() == 0
        assert chi_square_p(observed[expected > 0], expected[expected > 0]) > ERROR / 2


@pytest.mark.parametrize(("mechanism", "epsilon"), [("hm", 1.0), ("pm", 6.0), ("duchi", 1.0), ("laplace", 6.0)])
def test_vectors_are_estimated_without_bias(mechanism: str, epsilon: float) -> None:
    vector, runs, n = SampledVector(4, epsilon, mechanism, 0, 10), 300, 400
    values = np.random.default_rng(1).random((n, 4)) * [10, 5, 1, 0] + [0, 5, 0, 7]
    rng = Randomness.from_seed(2)
    found = [Aggregator(vector).add(vector.privatise(values, rng)).estimate() for _ in range(runs)]
    check_errors(np.array([each.means for each in found]) - values.mean(axis=0), [each.variances for each in found])


def check_errors(errors: Floats, variances: list[Floats]) -> None:
    """Each column has mean 0, and on average the stated variance, which may be too large where reports do not tell."""
    runs, d = errors.shape
    stated = np.mean(variances, axis=0)
    assert np.abs(errors.mean(axis=0) / np.sqrt(stated / runs)).max() < stats.norm.isf(ERROR / d / 2)
    ratio = errors.var(axis=0, ddof=1) / stated
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / d / 2, 1 - ERROR / d / 2))
    assert np.all((ratio > 0.75 * low) & (ratio < 1.1 * high)), ratio


def test_the_worst_variance_of_a_vector_is_that_of_the_factor_d_over_k() -> None:
    vector, n = SampledVector(4, 1.0, "pm"), 300_000
    found = Aggregator(vector).add(vector.privatise(np.ones((n, 4)), Randomness.from_seed(3))).estimate()
    assert (found.variances * n < vector.worst_variance).all()
    assert vector.worst_variance == pytest.approx(4 * 5.223597 + 3, rel=1e-5)


def test_attributes_that_nobody_told_of_are_named() -> None:
    vector = SampledVector(50, 1.0)
    few = Aggregator(vector).add(vector.privatise(np.zeros((3, 50)), Randomness.from_seed(1)))
    with fails("E101"):
        few.estimate()
    records = MixedRecords(SCHEMA, 1.0)
    one = Aggregator(records).add(records.privatise([(30, "red", 3)], Randomness.from_seed(2)))
    with fails("E101"):
        one.estimate()


# -- mixed records ----------------------------------------------------------------------------------------------------
def mixed(n: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(3)
    return {
        "age": rng.integers(10, 90, n),
        "colour": rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]),
        "district": rng.integers(0, 40, n) ** 2 // 40,
    }


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
@pytest.mark.parametrize("frequency", ["oue", "olh"])
def test_means_and_frequencies_come_from_the_same_reports(epsilon: float, frequency: str) -> None:
    records, columns = MixedRecords(SCHEMA, epsilon, frequency=frequency), mixed(600)
    rng, runs = Randomness.from_seed(4), 150
    found = [Aggregator(records).add(records.privatise(columns, rng)).estimate() for _ in range(runs)]
    ages = np.array([[each.means["age"].mean] for each in found]) - columns["age"].mean()
    check_errors(ages, [np.array([each.means["age"].variance]) for each in found])
    for name, true in (
        ("colour", [np.count_nonzero(columns["colour"] == each) for each in ("red", "green", "blue")]),
        ("district", np.bincount(columns["district"], minlength=40)),
    ):
        counts = np.array([each.frequencies[name].counts for each in found])
        assert all(each.frequencies[name].n == 600 for each in found)
        check_errors(counts - true, [each.frequencies[name].variances for each in found])


def test_records_by_rows_or_by_columns() -> None:
    records, columns = MixedRecords(SCHEMA, 1.0), mixed(50)
    rows = list(zip(*columns.values(), strict=True))
    one, two = (records.privatise(each, Randomness.from_seed(5)).to_bytes() for each in (columns, rows))
    assert one == two
    assert len(records.privatise([])) == 0


def test_reports_and_states_survive_their_bytes() -> None:
    check_reports(SampledVector(3, 6.0), np.random.default_rng(1).random((200, 3)), Randomness.from_seed(6))  # type: ignore[arg-type]
    check_reports(DuchiVector(11, 1.0), np.random.default_rng(1).random((200, 11)), Randomness.from_seed(6))  # type: ignore[arg-type]
    records = MixedRecords(SCHEMA, 5.0)
    check_reports(records, list(zip(*mixed(200).values(), strict=True)), Randomness.from_seed(6))  # type: ignore[arg-type]
    assert records.report_bytes == 2 * (2 + 5)


@given(st.integers(0, 13), st.integers(1, 255))
def test_altered_reports_are_refused_or_possible(place: int, change: int) -> None:
    records = MixedRecords(SCHEMA, 5.0)
    reports = records.privatise([(30, "red", 3)], Randomness.from_seed(7))
    data = bytearray(reports.to_bytes())
    data[-14 + place] ^= change
    try:
        again = records.read(bytes(data))
    except InputDataError:
        return
    tally = records.tally(again)
    assert tally.shape == records.tally_shape
    assert again.fields[0].max() < 3
    assert again.fields[0][0, 0] < again.fields[0][0, 1]


@pytest.mark.parametrize(
    ("record", "column"),
    [
        ((130, "red", 3), "age"),
        ((math.nan, "red", 3), "age"),
        (("30", "red", 3), "age"),
        ((30, "pink", 3), "colour"),
        ((30, None, 3), "colour"),
        ((30, "red", 40), "district"),
        ((30, "red", 0.5), "district"),
        ((30, "red", [1]), "district"),
        ((30, "red", None), "district"),
    ],
)
def test_wrong_records_are_refused_whatever_is_drawn(record: tuple[Any, ...], column: str) -> None:
    rows = np.empty((2, 3), dtype=object)
    rows[0], rows[1, :2], rows[1, 2] = (30, "red", 3), record[:2], record[2]
    for seed in range(5):
        with fails("E101") as caught:
            MixedRecords(SCHEMA, 1.0).privatise(rows, Randomness.from_seed(seed))
        assert repr(column) in caught.value.message


def test_records_of_another_shape_are_refused() -> None:
    records = MixedRecords(SCHEMA, 1.0)
    with fails("E101"):
        records.privatise({"age": [1], "district": [1]})
    with fails("E101"):
        records.privatise({"age": [1, 2], "colour": ["red"], "district": [1]})
    with fails("E101"):
        records.privatise([(1, "red")])
    for vector in (SampledVector(3, 1.0), DuchiVector(3, 1.0)):
        for wrong in ([[0.0, 0.0]], [0.0, 0.0, 0.0], [[0, 0, 2]], [[0, 0, math.nan]], [["a", "b", "c"]]):
            with pytest.raises(InputDataError):
                vector.privatise(wrong)


@pytest.mark.parametrize(
    "schema",
    [
        [],
        [Numeric("x", 0, 1), Categorical("x", 3)],
        [Numeric("x", 1, 0)],
        [Categorical("x", 1)],
    ],
)
def test_wrong_schemas_are_refused(schema: list[Any]) -> None:
    with fails("E100"):
        MixedRecords(schema, 1.0)


def test_wrong_dimensions_are_refused() -> None:
    for kind in (DuchiVector, SampledVector):
        for d in (0, -1, 1 << 20):
            with fails("E100"):
                kind(d, 1.0)


def test_parameters_read_back() -> None:
    for mechanism in (DuchiVector(3, 1.0), SampledVector(3, 1.0, "pm", 0, 5, True), MixedRecords(SCHEMA, 1.0)):
        assert type(mechanism)(**mechanism.get_params()).fingerprint == mechanism.fingerprint
    labels = [f"value {number}" for number in range(30)]
    one, other = (MixedRecords([Categorical("c", each)], 1.0) for each in (labels, [*labels[:-1], "another"]))
    assert one.fingerprint != other.fingerprint
    swapped = MixedRecords([SCHEMA[1], SCHEMA[0], SCHEMA[2]], 1.0)
    assert swapped.fingerprint != MixedRecords(SCHEMA, 1.0).fingerprint


def test_joint_intervals_are_wider() -> None:
    estimate = VectorEstimate(10, np.zeros(20), np.full(20, 0.01), -1, 1)
    single, joint = (estimate.intervals(joint=each)[1][0] for each in (False, True))
    assert single == pytest.approx(0.1959964, abs=1e-7)
    assert joint == pytest.approx(0.1 * stats.norm.isf(0.025 / 20))
    with fails("E100"):
        estimate.intervals(1.0)
