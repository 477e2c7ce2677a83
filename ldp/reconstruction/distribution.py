"""Reconstructs the distribution of values from perturbed ones, by "subtracting" the noise.

    em      expectation maximisation of Agrawal and Aggarwal (PODS 2001): the probability with which a value of one
            interval is perturbed into another, integrated over both; it ends in the most likely distribution
    bayes   the iteration of Agrawal and Srikant (SIGMOD 2000): the same step, with the noise's density
            between the middles of intervals

Let run, both chase the sample's accidents: peaks appear that are none. So a rule ends the iteration early:

    change      when two successive estimates differ, by χ², by less than 1 % of the test's 95 % threshold: the rule of
                Agrawal and Srikant
    fit         when they do, and besides one of two holds: a χ² test at 95 % does not distinguish the histogram of the
                perturbed values from the expected one; or the estimate is as likely as the true distribution may well
                be, which lacks ½·χ² of the maximum (Wilks). Distributions of several peaks take many small steps, and
                need this; the second is for values that no distribution on these intervals explains
    likelihood  near the maximum, for so many values that no accident is to be feared
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from ldp.expectation import DenseLikelihood, Step, bayes_steps
from ldp.reconstruction.density import Density, check_edges
from ldp.reconstruction.noise import AdditiveNoise, check_numbers
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

METHODS: Final = ("em", "bayes")
RULES: Final = ("fit", "change", "likelihood")

_LARGEST_CELLS: Final = 256
_LEAST_IN_CELL: Final = 20
_CLOSE: Final = 0.01
_CONFIDENCE: Final = 0.95
_NEAR_MAXIMUM: Final = 0.01  # nats
_BELIEVED: Final = 1 - 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """What an iteration found.

    Attributes:
        density: The distribution of the true values.
        iterations: How many steps were made.
        log_likelihoods: In nats, up to a constant, of the perturbed values; at the start and after each step.
        discrepancy: Pearson's χ² between observed and expected histogram of perturbed values, over its degrees of
            freedom: about 1 for the true distribution, more where the intervals, or the noise's parameters, are wrong.
    """

    density: Density
    iterations: int
    log_likelihoods: tuple[float, ...]
    discrepancy: float


def reconstruct(
    perturbed: ArrayLike,
    noise: AdditiveNoise,
    edges: ArrayLike,
    *,
    method: str = "em",
    rule: str = "fit",
    iterations: int = 2000,
) -> Reconstruction:
    """The distribution of the true values behind perturbed ones.

    Args:
        perturbed: True values plus noise, shape (n,).
        noise: With its public parameters.
        edges: Ends of the k intervals in which all true values lie, shape (k + 1,). Intervals much narrower than the
            noise cannot be distinguished.
        method: One of `METHODS`.
        rule: One of `RULES`, which ends the iteration.
        iterations: The most steps.

    Raises:
        ConfigurationError: A parameter is wrong.
        InputDataError: There are no values, or one is no number, or is out of the noise's reach from all intervals.
    """
    if method not in METHODS or rule not in RULES:
        raise ConfigurationError(f"take a method from {', '.join(METHODS)} and a rule from {', '.join(RULES)}")
    if iterations < 1:
        raise ConfigurationError("an iteration needs one step at least")
    ends, values = check_edges(edges), check_numbers(perturbed)
    if not values.size:
        raise InputDataError("there is no perturbed value to reconstruct from")
    if values.min() < ends[0] - noise.reach or values.max() > ends[-1] + noise.reach:
        raise InputDataError("a perturbed value is further from all intervals than the noise reaches; widen them")
    fit = _Fit(*_integrated(values, noise, ends))
    likelihood, histogram = (fit.likelihood, fit.histogram) if method == "em" else _middles(values, noise, ends)
    threshold = float(chi2.ppf(_CONFIDENCE, len(ends) - 2))
    trace: list[float] = []
    before = None
    for step in islice(bayes_steps(likelihood, histogram), iterations + 1):
        trace.append(step.log_likelihood)
        if before is not None and _ends(rule, before, step, fit, threshold):
            break
        before = step
    return Reconstruction(
        Density(ends, step.distribution), len(trace) - 1, tuple(trace), fit.chi_square(step) / fit.degrees
    )


class _Fit:
    """How well a distribution of the true values explains the histogram of the perturbed ones."""

    def __init__(self, likelihood: DenseLikelihood, histogram: Floats) -> None:
        self.likelihood, self.histogram = likelihood, histogram
        self.degrees = len(histogram) - 1
        self._threshold = float(chi2.ppf(_CONFIDENCE, self.degrees))

    def chi_square(self, step: Step) -> float:
        """Pearson's."""
        expected = self.likelihood.forward(step.distribution) * self.histogram.sum()
        held = expected > 0
        return float(np.sum(np.square(self.histogram[held] - expected[held]) / expected[held]))

    def passes(self, step: Step) -> bool:
        """Whether a test does not distinguish the two histograms."""
        return self.chi_square(step) <= self._threshold


def _ends(rule: str, before: Step, step: Step, fit: _Fit, threshold: float) -> bool:
    if rule == "likelihood":
        return step.gap <= _NEAR_MAXIMUM
    old, new = before.distribution, step.distribution
    held = old > 0
    moved = float(np.sum(np.square(new[held] - old[held]) / old[held])) * fit.histogram.sum()
    if moved > _CLOSE * threshold:
        return False
    return rule == "change" or 2 * step.gap <= threshold or fit.passes(step)


def _integrated(values: Floats, noise: AdditiveNoise, ends: Floats) -> tuple[DenseLikelihood, Floats]:
    """P(Z in cell j | X uniform in interval i), with cells of about equal counts; the outer ones have no end."""
    cells = int(np.clip(len(values) // _LEAST_IN_CELL, 2, _LARGEST_CELLS))
    cuts = np.unique(np.quantile(values, np.arange(1, cells) / cells))
    histogram = np.bincount(np.searchsorted(cuts, values, side="left"), minlength=len(cuts) + 1)
    mean_below = np.diff(noise.below_integral(cuts[None, :] - ends[:, None]), axis=0) / -np.diff(ends)[:, None]
    table = np.diff(np.clip(mean_below, 0, 1), axis=1, prepend=0.0, append=1.0)
    return DenseLikelihood(np.maximum(table, 0)), histogram.astype(np.float64)


def _middles(values: Floats, noise: AdditiveNoise, ends: Floats) -> tuple[DenseLikelihood, Floats]:
    """f_Y(middle of Z's cell − middle of X's interval), with cells as wide as the intervals are on average."""
    width = (ends[-1] - ends[0]) / (len(ends) - 1)
    # One value that nobody believes must not make cells without number: it counts in the outermost one.
    reach = min(noise.reach, noise.interval_width(_BELIEVED) / 2)
    values = np.clip(values, ends[0] - reach, ends[-1] + reach)
    first = np.floor((values.min() - ends[0]) / width)
    places = np.floor((values - ends[0]) / width - first).astype(np.int64)
    histogram = np.bincount(places)
    middles = ends[0] + (first + np.arange(len(histogram)) + 0.5) * width
    table = noise.density(middles[None, :] - (ends[:-1, None] + ends[1:, None]) / 2)
    # Near the ends of bounded noise the middle of a cell may be out of reach though the cell is not.
    reached = table.any(axis=0) & (histogram > 0)
    if not reached.any():  # as it may be with a value or two: then only whole intervals reach them
        return _integrated(values, noise, ends)
    return DenseLikelihood(table[:, reached]), histogram[reached].astype(np.float64)
