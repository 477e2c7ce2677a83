"""Accounting: time and tightness of bounds for shuffled reports, of composition, and speed of exact noise."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.optimize import brentq

from benchmarks.settings import Settings
from benchmarks.table import Table
from crypto.primitives.randomness import Randomness
from ldp.accounting.composition import Guarantee, optimal, sequential
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from ldp.accounting.lower_bounds import kinds_of
from ldp.accounting.shuffling import ShuffledBlanket, amplified_epsilon, clone, largest_local_epsilon
from ldp.accounting.skellam import Skellam
from ldp.blanket import Blanket
from ldp.registry import oracle

DELTA = 1e-6
POINTS = 1 << 18

R = TypeVar("R")


def run(settings: Settings) -> list[Table]:
    """A table each for shuffling, composition and noise."""
    return [_shuffling(settings), _composition(settings), _noise(settings)]


def _shuffling(settings: Settings) -> Table:
    table = Table(
        f"Amplification by shuffling, δ = {DELTA:g}",
        ("mechanism, ε₀, n", "ε, upper", "ms", "by FFT", "ms", "ε, lower", "ms"),
        notes=[
            f"by FFT: the same blanket on a lattice of {POINTS:,} points, not rounded to a safe side",
            "lower: two concrete batches of which three kinds of reports are told apart (for k-ary randomised response "
            "the variation ratio)",
        ],
    )
    sizes = (10_000,) if settings.quick else (1_000, 10_000, 1_000_000)
    for name, d in (("grr", 4), ("grr", 64), ("ss", 64), ("olh", 64), ("oue", 64)):
        for n in sizes:
            settings.tell(f"{name}, n = {n:,}")
            mechanism = oracle(name, d, 1.0)
            blanket = mechanism.blanket()
            upper = _timed(settings, partial(amplified_epsilon, mechanism, n, DELTA))
            lattice = _timed(settings, partial(_by_lattice, blanket, n))
            lower: tuple[float | None, float | None] = (None, None)
            if name != "olh":
                lower = _timed(settings, partial(kinds_of(mechanism).epsilon, n, DELTA))
            table.add(f"{name}, {d} values, 1, {n:,}", *upper, *lattice, *lower)
    for n in sizes:
        upper = _timed(settings, partial(amplified_epsilon, 1.0, n, DELTA))
        lattice = _timed(settings, partial(_by_lattice, clone(1.0), n))
        table.add(f"any (clones), 1, {n:,}", *upper, *lattice, None, None)
    inverse = _timed(settings, lambda: largest_local_epsilon(1.0, DELTA, 10_000, lambda e: oracle("olh", 64, e)))
    table.add("olh: largest ε₀ for ε = 1, 10,000", *inverse, None, None, None, None)
    return table


def _by_lattice(blanket: Blanket, n: int) -> float:
    """ε by a fast Fourier transform of the sum's law, losses put on both neighbours on a lattice."""
    gamma = float(blanket.weight)
    p, first, second = (
        np.array([float(getattr(atom, of)) for atom in blanket.atoms]) for of in ("probability", "first", "second")
    )

    def excess(epsilon: float) -> float:
        losses = first - math.exp(epsilon) * second
        reach = 2 * abs(n * gamma * float(p @ losses)) + 14 * math.sqrt(n * gamma * float(p @ losses**2))
        step = reach / POINTS
        below = np.floor(losses / step)
        above = losses / step - below
        law = np.zeros(POINTS)
        law[0] = 1 - gamma
        np.add.at(law, below.astype(np.int64) % POINTS, gamma * p * (1 - above))
        np.add.at(law, (below.astype(np.int64) + 1) % POINTS, gamma * p * above)
        half = np.fft.irfft(np.fft.rfft(law) ** n, POINTS)[: POINTS // 2]
        return float(half @ np.arange(POINTS // 2)) * step / gamma / n - DELTA

    near = ShuffledBlanket(blanket).epsilon(n, DELTA, 1.0)  # far from it, rounding errors of the transform show
    return float(brentq(excess, near / 2, 1.5 * near, xtol=1e-7))


def _composition(settings: Settings) -> Table:
    table = Table(
        f"Composition of (ε, 10⁻⁹), δ = {DELTA:g}", ("releases", "sum of ε", "optimal ε", "ms", "dp-accounting", "ms")
    )
    for title, epsilons in (
        ("100 of 0.1", [0.1] * 100),
        ("1,000 of 0.01", [0.01] * 1_000),
        ("50 of 0.05 to 0.35", [0.05 * (1 + place % 7) for place in range(50)]),
    ):
        settings.tell(f"composition, {title}")
        parts = [Guarantee(epsilon, 1e-9) for epsilon in epsilons]
        found, spent = _timed(settings, partial(optimal, parts, DELTA))
        peer: tuple[float | None, float | None] = (None, None)
        library = _library()
        if library is not None:
            peer = _timed(settings, partial(library, epsilons))
        table.add(title, sequential(parts).epsilon, found.epsilon, spent, *peer)
    return table


def _library() -> Callable[[list[float]], float] | None:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        return None

    def composed(epsilons: list[float]) -> float:
        whole = privacy_loss_distribution.identity(value_discretization_interval=1e-4)
        for epsilon in epsilons:
            one = common.DifferentialPrivacyParameters(epsilon, 1e-9)
            each = privacy_loss_distribution.from_privacy_parameters(one, value_discretization_interval=1e-4)
            whole = whole.compose(each)
        return float(whole.get_epsilon_for_delta(DELTA))

    return composed


def _noise(settings: Settings) -> Table:
    number = 10_000 if settings.quick else 1_000_000
    table = Table(f"Exact noise, {number:,} numbers", ("noise", "s", "variance / parameter"))
    for title, noise, parameter in (
        ("discrete Gaussian, σ = 1", DiscreteGaussian(1), 1.0),
        ("discrete Gaussian, σ = 27.5", DiscreteGaussian(Fraction(3025, 4)), 756.25),
        ("discrete Gaussian, σ = 10⁶", DiscreteGaussian(10**12), 1e12),
        ("Skellam, μ = 756.25", Skellam(756.25), 756.25),
        ("Skellam, μ = 10⁶", Skellam(10**6), 1e6),
    ):
        settings.tell(title)
        drawn, spent = _timed(settings, partial(noise.draw, number, Randomness.from_seed(1)))
        table.add(title, spent / 1000, float(drawn.var()) / parameter)
    return table


def _timed(settings: Settings, work: Callable[[], R]) -> tuple[R, float]:
    """A result, and the least milliseconds of processor time for it."""
    best = math.inf
    for _ in range(settings.repeats):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
    return found, 1000 * best
