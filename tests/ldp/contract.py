"""What holds for every mechanism, as functions for the tests of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.certify import satisfies, spent_epsilon
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Mechanism
from link.errors import InputDataError

ERROR = 1e-7  # probability that a statistical test of a right mechanism fails


def check_privacy(mechanism: Mechanism[object], tight: float) -> None:
    """The enumerated channel satisfies ε in exact arithmetic, spends what is claimed, and wastes at most `tight`."""
    channel = mechanism.channel()
    assert satisfies(channel, mechanism.epsilon)
    spent = spent_epsilon(channel)
    assert math.isclose(spent, mechanism.exact_epsilon, rel_tol=1e-12)
    assert mechanism.epsilon - tight <= spent <= mechanism.epsilon


def check_sampler(mechanism: Mechanism[object], inputs: int, rng: Randomness, reports: int = 20_000) -> None:
    """What is drawn follows the channel: a chi-square test for each input, together at `ERROR`."""
    for value, row in enumerate(mechanism.channel()):
        drawn = mechanism.privatise(np.full(reports, value), rng)
        observed = np.bincount(mechanism.outcomes(drawn), minlength=len(row))
        assert chi_square_p(observed, np.array([float(p) for p in row]) * reports) > ERROR / inputs


def chi_square_p(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """The p-value of counts, with the classes below 10 expected ones put together."""
    small = expected < 10
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
        if expected[-1] < 1e-3 and observed[-1] == 0:
            observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def check_estimates(
    oracle: FrequencyOracle, counts: NDArray[np.int64], rng: Randomness, runs: int = 200, *, normal: bool = True
) -> None:
    """Over repeated runs, every value's estimate has the right mean and variance, together at 2 · `ERROR`.

    Where errors are far from `normal` the variance has a wider margin: collisions have a heavy tail.
    """
    values, n, d = np.repeat(np.arange(len(counts)), counts), int(counts.sum()), len(counts)
    errors = []
    for run in range(runs):
        if "salt" in oracle.get_params():  # sketches are right over the draw of their public functions too
            oracle = oracle.with_params(salt=run)
        errors.append(oracle.unbiased(oracle.tally(oracle.privatise(values, rng)), n) - counts)
    variance = oracle.variance(counts.astype(np.float64), n)
    z = np.mean(errors, axis=0) / np.sqrt(variance / runs)
    assert np.all(np.abs(z) < stats.norm.isf(ERROR / d / 2)), z
    ratio = np.var(errors, axis=0, ddof=1) / variance
    # Sums over n independent users are nearly normal; a tenth is left for what is not.
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / d / 2, 1 - ERROR / d / 2))
    margin = 0.1 if normal else 0.5
    assert np.all(((1 - margin) * low < ratio) & (ratio < (1 + margin) * high)), ratio


def check_reports(mechanism: Mechanism[object], values: NDArray[np.int64], rng: Randomness) -> None:
    """Reports and states survive their bytes; cut, foreign and altered ones are refused; states merge."""
    reports = mechanism.privatise(values, rng)
    data = reports.to_bytes()
    assert len(data) <= 64 + len(reports) * mechanism.report_bytes
    again = mechanism.read(data)
    assert all(np.array_equal(a, b) for a, b in zip(again.fields, reports.fields, strict=True))
    for wrong in (data[:-1], data[:10], b"", data + b"\0", b"X" + data[1:], data[:6] + b"\0" * 16 + data[22:]):
        with pytest.raises(InputDataError):
            mechanism.read(wrong)
    whole = Aggregator(mechanism).add(reports)
    half = len(reports) // 2
    parts = Aggregator(mechanism).add(reports[:half]).merge(Aggregator(mechanism).add(reports[half:]))
    assert parts.to_bytes() == whole.to_bytes()
    assert Aggregator.from_bytes(whole.to_bytes(), mechanism).to_bytes() == whole.to_bytes()
    for wrong in (whole.to_bytes()[:-1], b"", b"X" + whole.to_bytes()[1:]):
        with pytest.raises(InputDataError):
            Aggregator.from_bytes(wrong, mechanism)
    with pytest.raises(InputDataError):
        Aggregator(mechanism).estimate()
