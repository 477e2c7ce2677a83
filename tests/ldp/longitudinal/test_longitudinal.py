"""Memoised protocols: both budgets, what repetition tells, and what a user's memo keeps."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import log_above
from ldp.certify import satisfies, spent_epsilon
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.memoised import Memo, MemoisedMechanism
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.longitudinal.two_rounds import LongitudinalDirectEncoding, LongitudinalUnaryEncoding
from ldp.mechanism import Channel
from ldp.oracles.unary_encoding import SymmetricUnaryEncoding
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError
from tests.ldp.contract import ERROR, check_estimates, check_privacy, check_reports, check_sampler, chi_square_p

pytestmark = pytest.mark.turn(5)

TWO_ROUNDS = (LongitudinalDirectEncoding, LongitudinalUnaryEncoding)
MEMOISED = (
    LongitudinalDirectEncoding(["a", "b", "c"], 1.0),
    LongitudinalUnaryEncoding(["a", "b", "c"], 1.0),
    BitFlip(["a", "b", "c"], 1.0, sampled=2),
)


def chained(first: Channel, second: Channel) -> Channel:
    """Row x, column y: over all kept answers z."""
    columns = list(zip(*second, strict=True))
    return [[sum(map(operator.mul, row, column), Fraction(0)) for column in columns] for row in first]


def repeated(mechanism: LongitudinalDirectEncoding, reports: int) -> Channel:
    """The channel of several reports that are based on one answer, over all their sequences."""
    second = mechanism.second.channel()
    several = second
    for _ in range(reports - 1):
        several = [[a * b for a in row for b in once] for row, once in zip(several, second, strict=True)]
    return chained(mechanism.first.channel(), several)


# -- two rounds -------------------------------------------------------------------------------------------------------
def test_direct_encoding_twice_has_the_check_values() -> None:
    found = LongitudinalDirectEncoding(64, 1.0, 2.0)
    kept, second = found.first, found.second
    assert [float(each) for each in (kept.p, kept.q, second.p)] == pytest.approx(
        [0.1049745, 0.0142068, 0.2991799], abs=1e-7
    )
    assert found.variance(np.zeros(64), 1)[0] == pytest.approx(21.919881, abs=1e-6)  # as of direct encoding with ε1


def test_unary_encoding_twice_has_the_check_values() -> None:
    found = LongitudinalUnaryEncoding(64, 1.0, 2.0)
    assert float(found.first.q) == pytest.approx(0.1192029, abs=1e-7)
    assert float(1 - found.flip.fraction) == pytest.approx(0.8033881, abs=1e-7)
    assert [float(found.p), float(found.q)] == pytest.approx([0.5, 0.2689414], abs=1e-7)
    assert found.exact_epsilon == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize(("epsilon", "permanent"), [(1.0, 2.0), (0.1, 5.0), (3.0, 3.5)])
def test_the_stated_channel_is_that_of_both_rounds(d: int, epsilon: float, permanent: float) -> None:
    direct = LongitudinalDirectEncoding(d, epsilon, permanent)
    assert chained(direct.first.channel(), direct.second.channel()) == direct.channel()
    unary = LongitudinalUnaryEncoding(d, epsilon, permanent)
    flip = unary.flip.fraction
    for one, both in ((unary.first.p, unary.p), (unary.first.q, unary.q)):
        assert one * (1 - flip) + (1 - one) * flip == both


def test_the_published_calibration_of_direct_encoding_wastes_most_of_the_budget() -> None:
    """It solves (p1·p2 + q1·q2)/(p1·q2 + q1·p2) = e^ε1, which holds for two values only."""
    k, grown, found = 64, math.e, LongitudinalDirectEncoding(64, 1.0, 2.0)
    p1, q1 = float(found.first.p), float(found.first.q)
    # With q2 = (1 − p2)/(k − 1): p2·(p1 − e·q1) = q2·(e·p1 − q1).
    ratio = (grown * p1 - q1) / (p1 - grown * q1) / (k - 1)
    p2 = ratio / (1 + ratio)
    q2 = (1 - p2) / (k - 1)
    p, q = p1 * p2 + (k - 1) * q1 * q2, p1 * q2 + q1 * p2 + (k - 2) * q1 * q2
    assert p2 == pytest.approx(0.0609092, abs=1e-7)
    assert math.log(p / q) == pytest.approx(0.2377, abs=1e-4)
    ours = found.variance(np.zeros(k), 1)[0]
    assert q * (1 - q) / (p - q) ** 2 / ours == pytest.approx(40.1, abs=0.05)
    assert spent_epsilon(found.channel()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", TWO_ROUNDS)
@pytest.mark.parametrize("permanent", [2.0, 16.0, 1.0001, math.nextafter(1.0, 2)])
def test_one_report_spends_its_budget_whatever_the_permanent_one(
    kind: type[LongitudinalDirectEncoding], permanent: float
) -> None:
    for d in (2, 5):
        found = kind(d, 1.0, permanent)
        check_privacy(found, tight=1e-5)
        assert 1 - 1e-5 < found.exact_permanent_epsilon <= permanent


def test_repetition_approaches_the_permanent_budget_and_never_exceeds_it() -> None:
    found = LongitudinalDirectEncoding(3, 1.0, 2.0)
    spent = [spent_epsilon(repeated(found, reports)) for reports in range(1, 7)]
    assert spent[0] == pytest.approx(1, abs=1e-9)
    assert all(before < after for before, after in itertools.pairwise(spent))
    assert spent[-1] > 1.9
    assert satisfies(repeated(found, 6), 2.0)


def test_what_is_learnt_of_a_repeated_bit_is_bounded_too() -> None:
    found = LongitudinalUnaryEncoding(2, 0.5, 3.0)
    kept = found.first.p, found.first.q
    flip, reports = found.flip.fraction, 200
    # A sequence of reports of one bit tells no more than how many were ones.
    odds = [
        [
            kept_one * (1 - flip) ** ones * flip ** (reports - ones)
            + (1 - kept_one) * flip**ones * (1 - flip) ** (reports - ones)
            for ones in range(reports + 1)
        ]
        for kept_one in kept
    ]
    ratios = [a / b for a, b in zip(*odds, strict=True)]
    both = log_above(max(ratios) / min(ratios))  # one bit for each of two values
    assert 2.999 < both <= found.exact_permanent_epsilon <= 3.0


@pytest.mark.parametrize("kind", TWO_ROUNDS)
def test_reports_of_the_same_answers_average_to_the_first_round(kind: type[LongitudinalDirectEncoding]) -> None:
    """And not to the true counts: what the first round hid stays hidden."""
    found, n, runs, rng = kind(5, 1.0, 3.0), 10_000, 200, Randomness.from_seed(4)
    none, counts = found.traits(n, rng), np.array([n, 0, 0, 0, 0])
    answers = found.answers(np.zeros(n, dtype=np.int64), none, rng)
    first = found.first.unbiased(found.first.tally(Reports(b"", (answers,))), n)
    repeated = [found.unbiased(found.tally(Reports(b"", found.respond(answers, none, rng))), n) for _ in range(runs)]
    second = found.variance(counts, n) - found.first.variance(counts, n)
    z = (np.mean(repeated, axis=0) - first) / np.sqrt(second / runs)
    assert np.all(np.abs(z) < stats.norm.isf(ERROR / 10))
    ratio = np.var(repeated, axis=0, ddof=1) / second
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / 10, 1 - ERROR / 10))
    assert np.all((low * 0.9 < ratio) & (ratio < high * 1.1))


def test_permanent_budgets_that_are_too_small_are_refused() -> None:
    for kind in TWO_ROUNDS:
        for permanent in (1.0, 0.5, 17.0, math.nan):
            with pytest.raises(ConfigurationError):
                kind(4, 1.0, permanent)
        with pytest.raises(ConfigurationError):
            kind(4, 16.0)
        assert kind(4, 10.0).exact_permanent_epsilon == pytest.approx(16, abs=1e-3)


# -- dBitFlipPM -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("d", "sampled"), [(2, 1), (4, 1), (4, 2), (5, 3), (3, 3), (5, None)])
def test_bit_flips_keep_the_contract(epsilon: float, d: int, sampled: int | None) -> None:
    found = BitFlip(d, epsilon, sampled)
    check_privacy(found, tight=1e-5)
    check_sampler(found, d, Randomness.from_seed(d), reports=10_000)
    check_reports(found, np.arange(500) % d, Randomness.from_seed(d))
    blanket = found.blanket()
    for part in ("first", "second"):
        assert sum(atom.probability * getattr(atom, part) for atom in blanket.atoms) == 1
    assert sum(atom.probability for atom in blanket.atoms) == 1
    assert all(min(atom.first, atom.second) >= blanket.weight for atom in blanket.atoms)


@pytest.mark.parametrize("sampled", [1, 4, 10])
def test_bit_flips_are_unbiased_with_the_stated_variance(sampled: int) -> None:
    check_estimates(
        BitFlip(10, 1.5, sampled), np.array([700, 0, 150, 90, 30, 20, 10, 0, 5, 1]), Randomness.from_seed(5)
    )


def test_bit_flips_of_all_values_are_symmetric_unary_encoding() -> None:
    whole, unary = BitFlip(6, 1.0, 6), SymmetricUnaryEncoding(6, 1.0)
    counts = np.array([5.0, 0, 0, 3, 2, 1])
    assert whole.variance(counts, 11) == pytest.approx(unary.variance(counts, 11))


def test_bit_flips_refuse_wrong_samples() -> None:
    for sampled in (0, 5, -1):
        with pytest.raises(ConfigurationError):
            BitFlip(4, 1.0, sampled)
    found = BitFlip(300, 1.0, 3)
    reports = found.privatise([7], Randomness.from_seed(1))
    samples, bits = reports.fields
    for wrong in (samples[:, ::-1], samples + 300, np.zeros_like(samples)):
        with pytest.raises(InputDataError):
            found.read(type(reports)(reports.fingerprint, (wrong.astype(samples.dtype), bits)).to_bytes())


# -- 1BitMean ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("intervals", [1, 3, 16])
def test_one_bit_means_have_the_check_values(intervals: int) -> None:
    n, found = 200_000, OneBitMean(1.0, 0.0, 10.0, intervals=intervals)
    for value in (0.0, 3.0, 10.0):
        share = 1 / (math.e + 1) + value / 10 * (math.e - 1) / (math.e + 1)
        if value == 3:
            assert share == pytest.approx(0.4075766, abs=1e-7)
        reports = found.privatise(np.full(n, value), Randomness.from_seed(6))
        observed = np.bincount(reports.fields[0], minlength=2)
        assert chi_square_p(observed, n * np.array([1 - share, share])) > ERROR
    check_privacy(found, tight=1e-9)
    check_reports(found, np.arange(11.0), Randomness.from_seed(7))


@pytest.mark.parametrize("intervals", [1, 4])
def test_one_bit_means_are_unbiased_with_the_stated_variance(intervals: int) -> None:
    found, rng = OneBitMean(2.0, -5.0, 45.0, intervals=intervals), Randomness.from_seed(8)
    values, runs = np.linspace(-5, 30, 3001), 400
    means = [Aggregator(found).add(found.privatise(values, rng)).estimate().mean for _ in range(runs)]
    variance = found.variance(values).sum() / len(values) ** 2
    assert abs(np.mean(means) - values.mean()) < stats.norm.isf(ERROR / 2) * np.sqrt(variance / runs)
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / 2, 1 - ERROR / 2))
    assert low < np.var(means, ddof=1) / variance < high


def test_rounding_points_follow_the_offset() -> None:
    found = OneBitMean(1.0, 0.0, 8.0, intervals=4)
    half = np.array([1 << 31], dtype=np.uint32)
    values = {0.0: 0, 0.9: 0, 1.0: 0, 1.1: 1, 2.0: 1, 2.9: 1, 3.1: 2, 7.1: 4, 8.0: 4}
    for value, point in values.items():
        assert found.keys([value], half)[0] == point
    with pytest.raises(ConfigurationError):
        OneBitMean(1.0, intervals=0)
    for wrong in ([9.0], [-0.1], [math.nan], ["a"], [[1.0]], [None]):
        with pytest.raises(InputDataError):
            found.privatise(wrong)  # type: ignore[arg-type]


# -- memos ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mechanism", MEMOISED, ids=lambda each: each.name)
def test_a_memo_answers_each_value_once(mechanism: MemoisedMechanism[object]) -> None:
    rng = Randomness.from_seed(9)
    memo = Memo.drawn(mechanism, rng)
    assert memo.spent == 0
    reports = [memo.report(value, rng) for value in ("a", "b", "a", "a", "b")]
    assert len(memo) <= 2
    assert memo.spent == len(memo) * mechanism.exact_permanent_epsilon
    gathered = Aggregator(mechanism)
    for each in reports:
        gathered.add(mechanism.read(each.to_bytes()))
    assert len(gathered) == 5
    with pytest.raises(InputDataError):
        memo.report("d")


@pytest.mark.parametrize("mechanism", MEMOISED, ids=lambda each: each.name)
def test_a_memo_survives_its_bytes(mechanism: MemoisedMechanism[object]) -> None:
    rng = Randomness.from_seed(10)
    memo = Memo.drawn(mechanism, rng)
    for value in ("c", "a"):
        memo.report(value, rng)
    data = memo.to_bytes()
    again = Memo.from_bytes(data, mechanism)
    assert again.to_bytes() == data
    assert len(again) == len(memo)
    for wrong in (data[:-1], data + b"\0", b"", b"X" + data[1:], data[:6] + b"\0" * 16 + data[22:], data[:20]):
        with pytest.raises(InputDataError):
            Memo.from_bytes(wrong, mechanism)
    for value in ("c", "a"):
        seeded = [each.report(value, Randomness.from_seed(11)).to_bytes() for each in (memo, again)]
        assert seeded[0] == seeded[1]
    assert again.to_bytes() == data


def test_kept_answers_do_not_average_out() -> None:
    """However many reports there are, they give away the kept answer at most, which is mostly wrong."""
    found, rng, users = LongitudinalDirectEncoding(4, 0.5, 1.0), Randomness.from_seed(12), 300
    none = found.traits(users, rng)
    answers = found.answers(np.full(users, 2), none, rng)
    reports = np.stack([found.respond(answers, none, rng)[0] for _ in range(1000)], axis=1)
    guesses = np.stack([np.count_nonzero(reports == value, axis=1) for value in range(4)], axis=1).argmax(axis=1)
    assert np.count_nonzero(guesses == answers) > 0.99 * users
    right = np.count_nonzero(guesses == 2)
    assert stats.binomtest(right, users, float(found.first.p)).pvalue > ERROR


def test_means_of_a_memo_move_only_when_the_point_does() -> None:
    found, rng = OneBitMean(1.0, 0.0, 10.0), Randomness.from_seed(13)
    memo = Memo.drawn(found, rng)
    bits = {int(memo.report(value, rng).fields[0][0]) for value in np.full(50, 4.0)}
    assert len(bits) == 1
    for value in np.linspace(0, 10, 101):
        memo.report(float(value), rng)
    assert len(memo) == 2
    assert memo.spent == pytest.approx(2)
    again = Memo.from_bytes(memo.to_bytes(), found)
    assert [int(again.report(v, rng).fields[0][0]) for v in (0.0, 10.0)] == [
        int(memo.report(v, rng).fields[0][0]) for v in (0.0, 10.0)
    ]


def test_bit_flip_memos_are_blind_to_values_that_are_not_sampled() -> None:
    found, rng = BitFlip(100, 1.0, sampled=2), Randomness.from_seed(14)
    memo = Memo.drawn(found, rng)
    sent = Counter(memo.report(value, rng).to_bytes() for value in range(100))
    assert max(sent.values()) >= 98
    assert len(memo) == 3
