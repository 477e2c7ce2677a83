"""RAPPOR: both responses, both budgets, Google's clients, and decoding."""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats
from sklearn.linear_model import Lasso

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.arithmetic.packed import column_sums
from ldp.bias_aware import NORMAL, selection_factor
from ldp.certify import satisfies, spent_epsilon
from ldp.rappor.client import RapporClient, google_response
from ldp.rappor.decode import decode, fit
from ldp.rappor.encoding import BloomFilters
from ldp.rappor.lasso import non_negative_lasso
from ldp.rappor.mechanism import BloomCounts, Rappor
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_reports, chi_square_p

pytestmark = pytest.mark.turn(8)

WORDS = [f"word {number}" for number in range(400)]


def words(counts: list[int]) -> list[str]:
    return [WORDS[place] for place, count in enumerate(counts) for _ in range(count)]


def collected(mechanism: Rappor, texts: list[str], seed: int) -> BloomCounts:
    return Aggregator(mechanism).add(mechanism.privatise(texts, Randomness.from_seed(seed))).estimate()


# -- budgets ----------------------------------------------------------------------------------------------------------
def test_check_values() -> None:
    found = Rappor(0.5, 0.5, 0.75, bits=16, hashes=2)
    assert (found.p_star, found.q_star) == (Fraction(9, 16), Fraction(11, 16))
    assert found.epsilon == found.exact_epsilon == pytest.approx(1.0742859, abs=1e-7)
    assert found.permanent_epsilon == pytest.approx(4.3944492, abs=1e-7)
    assert np.sqrt(found.variance(np.zeros((1, 16)), np.array([10_000])))[0, 0] == pytest.approx(396.8627, abs=1e-4)


def test_google_clients_draw_f_in_steps() -> None:
    native = Rappor.for_budget(0.5, 1.0, bits=32, hashes=2)
    assert float(native.f) == pytest.approx(0.8756470, abs=1e-7)
    assert native.permanent_epsilon == pytest.approx(1, abs=1e-12)
    google = Rappor.for_budget(0.5, 1.0, bits=32, hashes=2, google=True)
    assert google.f == Fraction(113, 128)
    assert google.permanent_epsilon == pytest.approx(0.94183, abs=1e-5)
    with fails("E100"):
        Rappor.for_budget(0.001, 0.01, bits=32, google=True)


@pytest.mark.parametrize(("f", "p", "q"), [(0.5, 0.5, 0.75), (0.25, 0.0, 1.0), (0.9, 0.1, 0.6), (0.3, 0.3, 0.31)])
@pytest.mark.parametrize(("bits", "hashes"), [(4, 1), (4, 2), (6, 2), (6, 3)])
def test_one_report_spends_what_is_stated(f: float, p: float, q: float, bits: int, hashes: int) -> None:
    found = Rappor(f, p, q, bits, hashes)
    channel = found.channel()
    assert satisfies(channel, found.epsilon)
    assert spent_epsilon(channel) == pytest.approx(found.exact_epsilon, rel=1e-12)
    assert found.exact_epsilon <= found.permanent_epsilon


@pytest.mark.parametrize("f", [0.25, 0.5, 0.95])
def test_the_permanent_response_spends_what_is_stated(f: float) -> None:
    """With p = 0 and q = 1 it is the report."""
    found = Rappor(f, 0.0, 1.0, bits=5, hashes=2)
    assert found.exact_epsilon == found.permanent_epsilon == spent_epsilon(found.channel())
    assert found.permanent_epsilon == pytest.approx(4 * math.log((1 - f / 2) / (f / 2)))


@given(st.floats(0.01, 6), st.floats(1.001, 2.5), st.integers(1, 4))
@settings(max_examples=60)
def test_budgets_are_kept_and_used(epsilon: float, factor: float, hashes: int) -> None:
    found = Rappor.for_budget(epsilon, epsilon * factor, bits=64, hashes=hashes)
    assert epsilon * (1 - 1e-9) <= found.exact_epsilon <= epsilon
    assert epsilon * factor * (1 - 1e-9) <= found.permanent_epsilon <= epsilon * factor
    # No p and q of the same ε1 give rare bits a smaller variance.
    odds = math.exp(epsilon / hashes)
    half, best = float(found.f / 2), float(found.p_star * (1 - found.p_star) / (found.q_star - found.p_star) ** 2)
    for q_star in np.linspace(0.05, 0.95, 181):
        p_star = q_star / (q_star + odds * (1 - q_star))
        spread = (q_star - p_star) / (1 - 2 * half)
        if p_star - half * spread >= 0 and q_star + half * spread <= 1:
            assert p_star * (1 - p_star) / (q_star - p_star) ** 2 >= best * (1 - 1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"f": 0.0},
        {"f": 1.0},
        {"f": math.nan},
        {"p": 0.75},
        {"q": 1.5},
        {"p": -0.1},
        {"p": 0.5, "q": 0.5 + 1e-30},
        {"bits": 1},
        {"bits": 3},
        {"hashes": 0},
        {"hashes": 17},
        {"cohorts": 0},
        {"bits": 33, "google": True},
        {"f": 0.995, "google": True, "bits": 32},
        {"f": 1e-6, "p": 0.0, "q": 1.0},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        Rappor(**{"f": 0.5, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(("epsilon", "permanent"), [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (1.0, math.nan), (1.0, 17.0)])
def test_wrong_budgets_are_refused(epsilon: float, permanent: float) -> None:
    with pytest.raises(ConfigurationError):
        Rappor.for_budget(epsilon, permanent)
    with pytest.raises(ConfigurationError):
        Rappor.for_budget(1.0, 2.0, hashes=0)


# -- filters ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("google", [False, True])
def test_filters_are_those_of_the_design(google: bool) -> None:
    filters = BloomFilters(24, 3, 5, google)
    texts = [*WORDS[:50], "", "ü🎈", WORDS[3]]
    design = filters.design(texts).toarray().reshape(5, 24, len(texts))
    assert set(np.unique(design)) == {0.0, 1.0}
    for cohort in range(5):
        rows = filters.rows(texts, np.full(len(texts), cohort))
        assert np.array_equal(np.unpackbits(rows, axis=1, count=24, bitorder="little"), design[cohort].T)
        for place, text in enumerate(texts):
            assert set(np.flatnonzero(design[cohort, :, place])) == set(filters.positions(text, cohort))


def test_bits_are_uniform_and_differ_between_cohorts() -> None:
    filters = BloomFilters(100, 2, 50)
    places = np.array([filters.positions(text, cohort) for text in WORDS for cohort in range(50)])
    for column in places.T:
        assert chi_square_p(np.bincount(column, minlength=100), np.full(100, 200.0)) > ERROR
    assert (
        chi_square_p(np.bincount(places[:, 0] // 10 * 10 + places[:, 1] // 10, minlength=100), np.full(100, 200.0))
        > ERROR
    )


def test_values_that_are_no_texts_are_refused() -> None:
    found = Rappor(0.5)
    for wrong in ([1], [None], [math.nan], "text", [["a"]], [b"a"], 3, [["a"], ["a", "b"]]):
        with fails("E101"):
            found.privatise(wrong)  # type: ignore[arg-type]
    assert len(found.privatise([])) == 0


# -- responses --------------------------------------------------------------------------------------------------------
def share_test(ones: int, n: int, expected: float) -> None:
    assert stats.binomtest(int(ones), n, expected).pvalue > ERROR


@pytest.mark.parametrize("f", [0.25, 0.875647])
def test_permanent_responses_flip_ones_to_zeros_too(f: float) -> None:
    """A client that never does gives every one away: ε∞ would be infinite."""
    found, n = Rappor(f, bits=12), 20_000
    filters = np.tile(np.array([0b00010010, 0], dtype=np.uint8), (n, 1))
    kept = column_sums(found.permanent(filters, Randomness.from_seed(1)), 12)
    for bit in range(12):
        share_test(kept[bit], n, 1 - f / 2 if bit in (1, 4) else f / 2)


def test_reports_follow_the_channel() -> None:
    found, n = Rappor(0.4, 0.2, 0.9, bits=5, hashes=2, cohorts=1), 40_000
    channel = found.channel()
    for text in WORDS[:4]:
        ones = sorted(set(found.filters.positions(text, 0)))
        odds = [found.q_star if bit in ones else found.p_star for bit in range(5)]
        row = [math.prod(odd if string >> bit & 1 else 1 - odd for bit, odd in enumerate(odds)) for string in range(32)]
        assert row in channel
        observed = np.bincount(found.outcomes(found.privatise([text] * n, Randomness.from_seed(2))), minlength=32)
        assert chi_square_p(observed, np.array([float(p) for p in row]) * n) > ERROR


def test_cohorts_tell_nothing_of_texts() -> None:
    found, n = Rappor(0.5, cohorts=50), 50_000
    for text in WORDS[:2]:
        cohorts = found.privatise([text] * n, Randomness.from_seed(3)).fields[0]
        assert chi_square_p(np.bincount(cohorts, minlength=50), np.full(50, n / 50)) > ERROR


@pytest.mark.parametrize("parameters", [{}, {"bits": 32, "cohorts": 300}, {"bits": 20, "google": True}])
def test_reports_and_states_survive_their_bytes(parameters: dict[str, int]) -> None:
    found = Rappor(0.5, **parameters)  # type: ignore[arg-type]
    check_reports(found, np.array(WORDS), Randomness.from_seed(4))  # type: ignore[arg-type]
    again = Rappor(**found.get_params())
    assert again.fingerprint == found.fingerprint
    assert Rappor(Fraction(1, 2), 0.5, Fraction(3, 4), **parameters).fingerprint == found.fingerprint  # type: ignore[arg-type]
    assert found.with_params(q=0.8).fingerprint != found.fingerprint


def test_reports_that_cannot_be_are_refused() -> None:
    found = Rappor(0.5, bits=12, cohorts=5)
    reports = found.privatise(WORDS[:3], Randomness.from_seed(5))
    cohorts, rows = reports.fields
    for fields in ((cohorts + 5, rows), (cohorts, rows | 0x80)):
        with pytest.raises(InputDataError):
            found.read(type(reports)(reports.fingerprint, fields).to_bytes())


def test_bit_counts_are_unbiased_with_the_stated_variance() -> None:
    found, runs, rng = Rappor(0.5, 0.4, 0.8, bits=8, hashes=2, cohorts=2), 200, Randomness.from_seed(6)
    filters = found.filters.rows(words([600, 300, 100]), np.arange(1000) % 2)
    cohorts = (np.arange(1000) % 2).astype(np.uint8)
    true = np.stack([column_sums(filters[cohorts == cohort], 8) for cohort in range(2)])
    errors = []
    for _ in range(runs):
        rows = found.instantaneous(found.permanent(filters, rng), rng)
        estimate = Aggregator(found).add(type(found.privatise([]))(found.fingerprint, (cohorts, rows))).estimate()
        errors.append(estimate.counts - true)
    variance = found.variance(true.astype(np.float64), np.array([500, 500]))
    assert np.all(np.abs(np.mean(errors, axis=0)) < stats.norm.isf(ERROR / 32) * np.sqrt(variance / runs))
    ratio = np.var(errors, axis=0, ddof=1) / variance
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / 32, 1 - ERROR / 32))
    assert np.all((low * 0.95 < ratio) & (ratio < high * 1.05))
    # What is stated with an estimate counts the draw of users too, so it is not less.
    assert np.all(500 * found.drawn_variance(true / 500) >= variance)


# -- clients ----------------------------------------------------------------------------------------------------------
def test_google_clients_answer_as_published() -> None:
    """The value that the test of google/rappor's Python client expects: secret 'secret', cohort 0, f = 1/2, q = 1."""
    filters = BloomFilters(16, 2, 64, google=True).rows(["abc"], np.array([0]))
    permanent = int.from_bytes(google_response(b"secret", filters, 16, 64)[0].tobytes(), "little")
    of_zeros = sum(1 << bit for bit in range(16) if bit % 3 != 1)
    assert permanent | of_zeros == 64493


@given(st.binary(min_size=16, max_size=40), st.integers(2, 32), st.integers(0, (1 << 32) - 1), st.integers(1, 127))
def test_google_responses_bit_by_bit(secret: bytes, bits: int, number: int, noise: int) -> None:
    number %= 1 << bits
    digest = hmac.new(secret, struct.pack(">L", number), hashlib.sha256).digest()
    expected = sum(
        (byte & 1 if byte >> 1 < noise else number >> place & 1) << place for place, byte in enumerate(digest[:bits])
    )
    row = np.frombuffer(number.to_bytes(-(-bits // 8), "little"), np.uint8)[None, :]
    assert int.from_bytes(google_response(secret, row, bits, noise)[0].tobytes(), "little") == expected


@pytest.mark.parametrize("google", [False, True])
def test_clients_flip_with_the_stated_probability(google: bool) -> None:
    found, rng, flips = Rappor(0.375, bits=32, cohorts=4, google=google), Randomness.from_seed(7), np.zeros((2, 2))
    for _ in range(400):
        client = RapporClient.drawn(found, rng)
        for text in WORDS[:2]:
            own = np.unpackbits(found.filters.rows([text], np.array([client.cohort])), bitorder="little")
            kept = np.unpackbits(client.permanent(text), bitorder="little")
            np.add.at(flips, (own, (own != kept).astype(np.int64)), 1)
    for kept, flipped in flips:  # of zeros, then of ones
        share_test(flipped, int(kept + flipped), 0.1875)


@pytest.mark.parametrize("google", [False, True])
def test_clients_give_one_permanent_response_for_ever(google: bool) -> None:
    found, rng = Rappor(0.5, 0.2, 0.9, bits=32, cohorts=8, google=google), Randomness.from_seed(8)
    client = RapporClient.drawn(found, rng)
    again = RapporClient.from_bytes(client.to_bytes(), found)
    assert again.cohort == client.cohort
    for text in WORDS[:20]:
        assert np.array_equal(client.permanent(text), again.permanent(text))
    other = RapporClient.drawn(found, rng)
    other.cohort = client.cohort
    assert any(not np.array_equal(client.permanent(text), other.permanent(text)) for text in WORDS[:5])
    # Many reports give the permanent response away and nothing else: the ones among its bits are reported with q.
    reports = [client.report("tea", rng) for _ in range(2000)]
    assert all(int(each.fields[0][0]) == client.cohort for each in reports)
    seen = column_sums(np.concatenate([found.read(each.to_bytes()).fields[1] for each in reports]), 32)
    kept = np.unpackbits(client.permanent("tea")[0], bitorder="little")
    for bit in range(32):
        share_test(seen[bit], 2000, 0.9 if kept[bit] else 0.2)


def test_wrong_clients_are_refused() -> None:
    found = Rappor(0.5, cohorts=4)
    data = RapporClient.drawn(found).to_bytes()
    for wrong in (b"", data[:20], b"X" + data[1:], data[:6] + b"\0" * 16 + data[22:]):
        with pytest.raises(InputDataError):
            RapporClient.from_bytes(wrong, found)
    for cohort, secret in ((4, bytes(32)), (-1, bytes(32)), (0, bytes(31)), (0, b"")):
        with pytest.raises(ConfigurationError):
            RapporClient(found, cohort, secret)
    with pytest.raises(ConfigurationError):
        RapporClient.from_bytes(data[:-1], found)


# -- decoding ---------------------------------------------------------------------------------------------------------
def test_the_survey_example() -> None:
    """Three words in filters of eight bits; the sums 21012020 mean that the first word was used twice."""
    filters = np.array([[int(bit) for bit in word] for word in ("10001000", "01000010", "00010010")], dtype=np.float64)
    sums = np.array([int(bit) for bit in "21012020"], dtype=np.float64)
    fitted, _ = fit(sparse.csc_array(filters.T), sums, np.ones_like, resamples=5, rng=Randomness.from_seed(1))
    assert fitted == pytest.approx([2, 1, 1, 0], abs=1e-12)


@given(st.integers(0, 1 << 30), st.floats(0.1, 20))
@settings(max_examples=25)
def test_the_lasso_is_that_of_scikit_learn(seed: int, penalty: float) -> None:
    generator = np.random.default_rng(seed)
    matrix = (generator.random((40, 60)) < 0.2) * generator.uniform(0.5, 2, (40, 1))
    matrix[0] += 0.1
    target = generator.normal(size=40) + matrix[:, :5].sum(axis=1)
    found = non_negative_lasso(sparse.csc_array(matrix), target, np.full(60, penalty))
    oracle = Lasso(alpha=penalty / 40, positive=True, fit_intercept=False, tol=1e-12, max_iter=1_000_000)
    expected = oracle.fit(matrix, target).coef_

    def loss(beta: np.ndarray) -> float:  # type: ignore[type-arg]
        return float(np.square(target - matrix @ beta).sum() / 2 + penalty * beta.sum())

    assert loss(found) <= loss(expected) * (1 + 1e-6) + 1e-9
    assert (found >= 0).all()


def test_least_squares_are_weighted_and_not_negative() -> None:
    generator = np.random.default_rng(1)
    design, scales = (generator.random((60, 20)) < 0.2).astype(np.float64), generator.uniform(0.5, 2, 60)
    shares = design @ np.maximum(generator.normal(size=20), 0) + generator.normal(size=60) * scales
    fitted, deviations = fit(
        sparse.csc_array(design), shares, lambda _: scales, resamples=200, rng=Randomness.from_seed(2)
    )
    whole = np.hstack([design, np.ones((60, 1))]) / scales[:, None]
    assert fitted == pytest.approx(optimize.nnls(whole, shares / scales)[0], abs=1e-9)
    plain = np.sqrt(np.diag(np.linalg.inv(whole.T @ whole)))[:20]
    assert np.all((deviations >= plain * (1 - 1e-9)) & (deviations < 1.4 * plain))


def test_frequencies_are_found_among_few_candidates() -> None:
    found, counts = Rappor.for_budget(3.0, 6.0, bits=64, cohorts=16), [8000, 4000, 2000, 2000, 0, 0, 4000]
    runs = [decode(collected(found, words(counts), seed), WORDS[:50]) for seed in range(3)]
    for decoded in runs:
        assert [name for name, _, _ in decoded.found()[:1]] == [WORDS[0]]
        assert {WORDS[1], WORDS[6]} <= {name for name, _, _ in decoded.found()}
        assert decoded.counts.shape == decoded.deviations.shape == decoded.p_values.shape == (50,)
        low, high = decoded.intervals(0.95)
        assert np.all((low >= 0) & (low <= decoded.counts) & (decoded.counts <= high) & (high <= 20_000))
        told, stated = decoded.found(), dict(zip(decoded.candidates, decoded.deviations.tolist(), strict=True))
        widened = selection_factor(len(told), 50)  # what is told was chosen for being large
        assert widened > 1.2
        assert [deviation / stated[name] for name, _, deviation in told] == pytest.approx([widened] * len(told))
    true = np.zeros(50)
    true[:7] = counts
    z = np.array([(decoded.counts - true) / decoded.deviations for decoded in runs])
    assert np.sqrt(np.square(z).mean()) < 1.2
    assert np.abs(z[:, [0, 1, 6]]).max() < 4.5


@pytest.mark.parametrize(("epsilon", "users", "least"), [(2.0, 150, 30), (3.0, 400, 300)])
def test_intervals_of_what_was_found_cover(epsilon: float, users: int, least: int) -> None:
    """Also where luck alone decides which of equal candidates are found. Intervals that cover .93 fail at 10^-6."""
    mechanism, covered = Rappor.for_budget(epsilon / 2, epsilon, bits=32, cohorts=8), list[bool]()
    for seed in range(60):
        found = decode(collected(mechanism, words([users] * 30), seed), WORDS[:30]).found()
        covered += [abs(count - users) <= NORMAL * deviation for _, count, deviation in found]
    assert len(covered) > least
    assert stats.binom.cdf(sum(covered), len(covered), 0.93) > 1e-6, np.mean(covered)


@pytest.mark.parametrize("candidates", [60, 400])  # without the LASSO, and with it
def test_candidates_that_nobody_has_are_rarely_called_significant(candidates: int) -> None:
    """With an allowed error of 5 %, more than 3 of 10 decodings err with a probability of 0.1 %; seeds are fixed."""
    found, false = Rappor.for_budget(2.0, 4.0, bits=32, cohorts=8), 0
    for seed in range(10):
        decoded = decode(collected(found, words([3000, 1500]), seed), WORDS[:candidates])
        assert decoded.significant[:2].all()
        false += bool(decoded.significant[2:].any())
    assert false <= 3


def test_many_candidates_are_selected_by_the_lasso() -> None:
    found = Rappor.for_budget(3.0, 6.0, bits=32, hashes=2, cohorts=8)
    many = [f"candidate {number}" for number in range(5_000)]
    texts = [many[number % 5] for number in range(40_000)]
    decoded = decode(collected(found, texts, 9), many)
    names = [name for name, _, _ in decoded.found()]
    assert set(names) == set(many[:5])
    assert decoded.counts[:5] == pytest.approx(np.full(5, 8000.0), abs=4.5 * decoded.deviations[:5].max())
    assert np.all(decoded.deviations > 0)


def test_texts_that_are_no_candidates_do_not_inflate_others() -> None:
    found = Rappor.for_budget(4.0, 8.0, bits=64, cohorts=32)
    texts = [f"unknown {number % 5000}" for number in range(30_000)] + words([10_000, 0, 5_000])
    decoded = decode(collected(found, texts, 10), WORDS[:10])
    assert {name for name, _, _ in decoded.found()} == {WORDS[0], WORDS[2]}
    true = np.array([10_000, 0, 5_000, *[0] * 7])
    assert np.abs((decoded.counts - true) / decoded.deviations).max() < 4
    assert decoded.others == pytest.approx(30_000, rel=0.15)


def test_cohorts_without_reports_are_left_out() -> None:
    found = Rappor.for_budget(6.0, 12.0, bits=32, cohorts=500)
    decoded = decode(collected(found, words([200, 100]), 11), WORDS[:20])
    assert np.isfinite(decoded.counts).all()
    assert decoded.counts[0] > decoded.counts[1] > decoded.counts[2:].max()


def test_the_same_counts_are_decoded_alike() -> None:
    counts = collected(Rappor.for_budget(3.0, 6.0, bits=32, cohorts=8), words([500, 500]), 12)
    one, two = (decode(counts, WORDS[:300]) for _ in range(2))
    assert np.array_equal(one.deviations, two.deviations)
    three = decode(counts, WORDS[:300], rng=Randomness.from_seed(5))
    assert np.array_equal(one.counts, three.counts)


def test_wrong_decodings_are_refused() -> None:
    counts = collected(Rappor(0.5, bits=4, hashes=2, cohorts=1), WORDS[:50], 13)
    with fails("E101"):
        decode(collected(Rappor(0.5, bits=10, hashes=1, cohorts=1), WORDS[:50], 13), WORDS[:8])
    with fails("E101"):
        fit(sparse.csc_array(np.ones((8, 1))), np.ones(8), np.ones_like, resamples=5, rng=Randomness.from_seed(1))
    for wrong in ([], ["a", "a"]):
        with pytest.raises(InputDataError):
            decode(counts, wrong)
    for parameters in ({"error": 0.0}, {"error": 1.0}, {"resamples": 4}):
        with pytest.raises(ConfigurationError):
            decode(counts, ["a"], **parameters)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError):
        decode(counts, ["a"]).intervals(1.0)
