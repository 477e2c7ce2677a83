"""A likely distribution of values behind perturbed ones: expectation maximisation, or iterative Bayesian update.

Unbiased estimators may give negative frequencies; this one gives a distribution, in the end the one that makes what was
observed likeliest. Each step spreads every observation over the values that may have caused it, by Bayes' rule with the
distribution so far, and takes these shares for the next distribution:

    θ_x ← θ_x · Σ_y h_y·P(y|x) / Σ_x' θ_x'·P(y|x')        h_y: share of observations that are y

The likelihood never falls. Its logarithm is concave in θ, so there is no peak beside the highest.

Sources: Agrawal and Aggarwal, "On the Design and Quantification of Privacy Preserving Data Mining Algorithms", PODS
2001; Agrawal, Srikant and Thomas, "Privacy Preserving OLAP", SIGMOD 2005 (any channel); ElSalamouny and
Palamidessi, "Generalized Iterative Bayesian Update and Applications to Mechanisms for Privacy Protection", EuroS&P
2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.mechanism import Channel, Mechanism
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.unary_encoding import UnaryEncoding
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-9
CHUNK: Final = 1 << 20  # bits that are unpacked at once
KEPT: Final = 1 << 24  # bits of which the unpacked ones are kept for all steps, 128 MiB


class Likelihood(Protocol):
    """P(y|x) for d inputs x and m observations y, or multiples of it that depend on y only."""

    @property
    def shape(self) -> tuple[int, int]:
        """(d, m)."""

    def forward(self, distribution: Floats) -> Floats:
        """Σ_x θ_x·P(y|x) for all y: shape (d,) to shape (m,)."""

    def backward(self, weights: Floats) -> Floats:
        """Σ_y P(y|x)·w_y for all x: shape (m,) to shape (d,)."""


class DenseLikelihood:
    """Any table of likelihoods.

    Args:
        table: Shape (d, m): row x, column y.
    """

    def __init__(self, table: Floats) -> None:
        self._table = table

    @classmethod
    def of_channel(cls, channel: Channel | Floats) -> DenseLikelihood:
        """A channel: each row holds the probabilities of all outputs.

        Raises:
            ConfigurationError: A row is no distribution.
        """
        table = np.asarray(channel, dtype=np.float64)
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or table.min() < 0:
            raise ConfigurationError("a channel is a table of probabilities: a row an input, a column an output")
        off = np.abs(table.sum(axis=1) - 1)
        if off.max() > _ROUNDING:
            row = int(np.argmax(off))
            raise ConfigurationError(
                f"row {row} of the channel adds up to {table[row].sum():g}, not to 1; it must list all outputs"
            )
        return cls(table)

    @property
    def shape(self) -> tuple[int, int]:
        """(d, m)."""
        d, m = self._table.shape
        return d, m

    def forward(self, distribution: Floats) -> Floats:
        """Σ_x θ_x·P(y|x)."""
        found: Floats = distribution @ self._table
        return found

    def backward(self, weights: Floats) -> Floats:
        """Σ_y P(y|x)·w_y."""
        found: Floats = self._table @ weights
        return found


class DirectLikelihood:
    """Direct encoding (GRR): p on the diagonal and q elsewhere, so a step takes O(d) instead of O(d²).

    Args:
        oracle: Its parameters.
    """

    def __init__(self, oracle: DirectEncoding) -> None:
        self._d, self._p, self._q = oracle.domain.size, float(oracle.p), float(oracle.q)

    @property
    def shape(self) -> tuple[int, int]:
        """(d, d)."""
        return self._d, self._d

    def forward(self, distribution: Floats) -> Floats:
        """q·Σθ + (p − q)·θ_y."""
        return self._both(distribution)

    def backward(self, weights: Floats) -> Floats:
        """q·Σw + (p − q)·w_x."""
        return self._both(weights)

    def _both(self, vector: Floats) -> Floats:
        found: Floats = self._q * vector.sum() + (self._p - self._q) * vector
        return found


class UnaryLikelihood:
    """Unary encodings (SUE, OUE, THE), each report an observation of its own.

    Against a report whose bits were all drawn with q, one from x is likelier by p/q if it has bit x, and by
    (1 − p)/(1 − q) if not. The 2^d possible reports are never listed: a step takes O(n·d).

    Args:
        oracle: Its parameters.
        reports: n reports of it.
    """

    def __init__(self, oracle: UnaryEncoding, reports: Reports) -> None:
        self._rows, self._d = reports.fields[0], oracle.domain.size
        self._with = float(oracle.p / oracle.q)
        self._without = float((1 - oracle.p) / (1 - oracle.q))
        self._step = max(1, CHUNK // self._d)
        small = len(self._rows) * self._d <= KEPT
        self._kept = [self._unpacked(start) for start in self._starts()] if small else None

    @property
    def shape(self) -> tuple[int, int]:
        """(d, n)."""
        return self._d, len(self._rows)

    def forward(self, distribution: Floats) -> Floats:
        """Σ_x θ_x times the ratios above, for each report."""
        held = [bits @ distribution for bits in self._bits()]
        found: Floats = self._without * distribution.sum() + (self._with - self._without) * np.concatenate(held)
        return found

    def backward(self, weights: Floats) -> Floats:
        """Σ over reports of weight times ratio, for each x."""
        held = np.zeros(self._d)
        for start, bits in zip(self._starts(), self._bits(), strict=True):
            held += weights[start : start + self._step] @ bits
        found: Floats = self._without * weights.sum() + (self._with - self._without) * held
        return found

    def _starts(self) -> range:
        return range(0, len(self._rows), self._step)

    def _bits(self) -> Iterable[Floats]:
        return map(self._unpacked, self._starts()) if self._kept is None else self._kept

    def _unpacked(self, start: int) -> Floats:
        rows = self._rows[start : start + self._step]
        return np.unpackbits(rows, axis=1, count=self._d, bitorder="little").astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Where an iteration stands.

    Attributes:
        distribution: θ, shape (d,).
        expected: Σ_x θ_x·P(y|x), shape (m,): what is expected of the observations.
        log_likelihood: Σ_y h_y·ln(expected_y), in nats, over all observations.
        gap: An upper bound of what the log-likelihood lacks of its maximum: its slope towards the best corner of the
            simplex, which a concave function never exceeds.
    """

    distribution: Floats
    expected: Floats
    log_likelihood: float
    gap: float


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodFit:
    """What an iteration found.

    Attributes:
        distribution: θ, shape (d,); non-negative, adds up to 1.
        log_likelihoods: In nats, before the first step, after it, and so on to the end.
        gap: At most so many nats does the last one lack of the maximum.
    """

    distribution: Floats
    log_likelihoods: tuple[float, ...]
    gap: float

    @property
    def iterations(self) -> int:
        """How many steps were made."""
        return len(self.log_likelihoods) - 1


def bayes_steps(
    likelihood: Likelihood, histogram: ArrayLike, *, start: Floats | None = None, smooth: bool = False
) -> Iterator[Step]:
    """The iteration without an end; the caller stops it.

    Args:
        likelihood: Of m observations from d inputs.
        histogram: Shape (m,): how often each was made.
        start: Shape (d,): the first distribution, with no zero; uniform by default.
        smooth: Averages neighbours after each step (EMS, see `smoothed`), for ordered inputs. The likelihood may then
            fall, and `gap` may stay large.

    Yields:
        The start, then the state after each step.

    Raises:
        InputDataError: The histogram is no histogram of m outputs, or has one that no input can yield.
    """
    d, m = likelihood.shape
    counts = np.asarray(histogram, dtype=np.float64)
    if counts.shape != (m,) or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise InputDataError(f"a histogram of {m} outputs has a count for each, none below 0 and not all 0")
    total, seen = counts.sum(), counts > 0
    theta = np.full(d, 1 / d) if start is None else _distribution(start, d)
    while True:
        expected = likelihood.forward(theta)
        if (expected[seen] <= 0).any():
            raise InputDataError("something was observed that no value yields; the channel is not that of the data")
        ratios = np.divide(counts, expected, out=np.zeros(m), where=seen)
        pull = likelihood.backward(ratios) / total
        log_likelihood = float(counts[seen] @ np.log(expected[seen]))
        yield Step(theta, expected, log_likelihood, max(0.0, float(total * (pull.max() - 1))))
        theta = theta * pull
        theta /= theta.sum()
        if smooth:
            theta = smoothed(theta)


def iterative_bayes(
    channel: Likelihood | Channel | Floats,
    histogram: ArrayLike,
    *,
    iterations: int = 10_000,
    tolerance: float | None = None,
    start: Floats | None = None,
    smooth: bool = False,
) -> LikelihoodFit:
    """The distribution of inputs behind a histogram of outputs, near the likeliest one.

    Args:
        channel: Shape (d, m): row x, column y, the probability of output y from input x; or a structured one.
        histogram: Shape (m,): how often each output was observed. Shares need a tolerance of their own, as the default
            is for counts.
        iterations: The most steps.
        tolerance: In nats: ends when the log-likelihood provably lacks no more of its maximum. By default
            (d − 1)/10, a fifth of what the true distribution itself lacks on average (Wilks): further steps fit the
            noise, and take long.
        start: Shape (d,): the first distribution, with no zero; uniform by default.
        smooth: Averages neighbours after each step, see `bayes_steps`.

    Raises:
        ConfigurationError: A row of the channel does not add up to 1, or a parameter is out of range.
        InputDataError: The histogram does not fit the channel.
    """
    likelihood = DenseLikelihood.of_channel(channel) if isinstance(channel, list | np.ndarray) else channel
    allowed = (likelihood.shape[0] - 1) / 10 if tolerance is None else tolerance
    if iterations < 1 or not allowed >= 0:
        raise ConfigurationError("an iteration needs one step at least and a tolerance that is not negative")
    if tolerance is None and np.any(np.rint(histogram) != histogram):
        raise InputDataError("the histogram holds shares; give counts, or a tolerance in nats for such a histogram")
    trace: list[float] = []
    for step in islice(bayes_steps(likelihood, histogram, start=start, smooth=smooth), iterations + 1):
        trace.append(step.log_likelihood)
        if step.gap <= allowed:
            break
    return LikelihoodFit(step.distribution, tuple(trace), step.gap)


def fit_reports(
    mechanism: Mechanism[Any],
    reports: Reports,
    *,
    iterations: int = 10_000,
    tolerance: float | None = None,
    start: Floats | None = None,
    smooth: bool = False,
) -> LikelihoodFit:
    """The distribution of values behind reports of a mechanism, near the likeliest one.

    Direct and unary encodings have structured likelihoods for domains of any size; other mechanisms need outputs that
    can be enumerated.

    Args:
        mechanism: Whose reports they are.
        reports: At least one.
        iterations: As of `iterative_bayes`, and so are all that follow.
        tolerance: As there.
        start: As there.
        smooth: As there.

    Raises:
        ConfigurationError: The mechanism's outputs cannot be enumerated.
        InputDataError: There is no report, or they belong to another mechanism.
    """
    if reports.fingerprint != mechanism.fingerprint or not len(reports):
        raise InputDataError("there is no report to estimate from, or the reports belong to another mechanism")
    fitted = partial(iterative_bayes, iterations=iterations, tolerance=tolerance, start=start, smooth=smooth)
    if isinstance(mechanism, DirectEncoding):
        return fitted(DirectLikelihood(mechanism), mechanism.tally(reports))
    if isinstance(mechanism, UnaryEncoding):
        # Equal reports count as one observation made several times: many at small domains, where that saves most.
        _, first, times = np.unique(reports.fields[0], axis=0, return_index=True, return_counts=True)
        return fitted(UnaryLikelihood(mechanism, reports[first]), times)
    try:
        channel, outcomes = mechanism.channel(), mechanism.outcomes(reports)
    except NotImplementedError as error:
        raise ConfigurationError(f"{error}; take grr, sue, oue or the for likelihoods") from None
    return fitted(channel, np.bincount(outcomes, minlength=len(channel[0])))


def smoothed(distribution: Floats) -> Floats:
    """Each share becomes ¼ of both neighbours' and ½ of its own; at an end, ⅓ of the neighbour's and ⅔ of its own.

    Source: the smoothing of EMS in Li et al., "Estimating Numerical Distributions under Local Differential Privacy",
    SIGMOD 2020 (binomial weights 1, 2, 1, over what exists of them), scaled to add up to 1.
    """
    padded, weights = np.pad(distribution, 1), np.pad(np.ones(len(distribution)), 1)
    total = padded[:-2] + 2 * padded[1:-1] + padded[2:]
    found = total / (weights[:-2] + 2 * weights[1:-1] + weights[2:])
    scaled: Floats = found / found.sum()
    return scaled


def _distribution(start: Floats, d: int) -> Floats:
    found = np.asarray(start, dtype=np.float64)
    if found.shape != (d,) or not np.isfinite(found).all() or (found <= 0).any():
        raise ConfigurationError(f"an iteration starts from {d} positive shares: what is 0 would stay 0")
    scaled: Floats = found / found.sum()
    return scaled
