"""Simulates a collection under local differential privacy: estimates beside the counts that only a simulation knows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coordinator.frequency.values import Collection
from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.choice import choose
from ldp.consistency import METHODS, consistent
from ldp.domain import Codes
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.registry import oracle, oracle_names, settable
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

Watcher = Callable[[str, int, int], None]
"""Called with a mechanism's name, how many users have reported to it in this run, and how many will."""

AUTO: Final = "auto"

BATCH_BYTES: Final = 1 << 26  # of reports that are held at once, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be simulated.

    Attributes:
        mechanisms: Names of frequency oracles, or "auto".
        epsilon: The privacy budget ε of a report.
        runs: Collections of the same values; estimates are those of the first, errors are over all.
        seed: Repeats every random draw; None for the operating system's randomness.
        post_processing: A method of `ldp.consistency`; None for raw estimates only.
        confidence: Of the intervals.
        top: How many of the most frequent values are looked for, and shown.
        parameters: Further parameters of mechanisms, for all that have one of the name.

    Raises:
        ConfigurationError: A parameter is out of its range.
    """

    mechanisms: tuple[str, ...]
    epsilon: float
    runs: int = 1
    seed: int | None = None
    post_processing: str | None = None
    confidence: float = 0.95
    top: int = 20
    parameters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ConfigurationError(f"a simulation has at least one run, not {self.runs}")
        if self.top < 1:
            raise ConfigurationError(f"at least the one most frequent value is looked for, not {self.top}")
        if not 0 < self.confidence < 1:
            raise ConfigurationError(f"a confidence lies between 0 and 1, not at {self.confidence:g}")
        if self.post_processing is not None and self.post_processing not in METHODS:
            raise ConfigurationError(
                f"there is no post-processing '{self.post_processing}'; take one of {', '.join(METHODS)}"
            )


@dataclass(frozen=True, slots=True)
class Errors:
    """How far estimated counts lie from the true ones, over all values and runs.

    Attributes:
        rmse: Root of the mean squared error of the raw estimates.
        theory_rmse: The same by the mechanism's exact variance at the true counts.
        chance: Standard deviation of `rmse / theory_rmse` if the errors of values were normal and independent.
        mean_absolute: Mean absolute error.
        largest: Largest absolute error.
        coverage: Share of the intervals that hold the true count.
        top_found: Share of the most frequent values that are among as many with the highest estimates.
        post_processed_rmse: Of the post-processed estimates; None without post-processing.
    """

    rmse: float
    theory_rmse: float
    chance: float
    mean_absolute: float
    largest: float
    coverage: float
    top_found: float
    post_processed_rmse: float | None

    @property
    def ratio(self) -> float:
        """Observed by theoretical error; near 1 where the theory holds."""
        return self.rmse / self.theory_rmse


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one mechanism gave.

    Attributes:
        oracle: The mechanism.
        reason: Why it was chosen, where it was.
        estimate: Raw estimates of the first run.
        low: Lower ends of their intervals, shape (d,).
        high: Upper ends.
        post_processed: Counts of the first run after post-processing, shape (d,); None without.
        deviations: Theoretical standard deviations at the true counts, shape (d,).
        errors: Over all runs.
        client_s: Seconds that all clients took, mean of the runs.
        server_s: Seconds that the server took.
    """

    oracle: FrequencyOracle
    reason: str
    estimate: Estimate
    low: Floats
    high: Floats
    post_processed: Floats | None
    deviations: Floats
    errors: Errors
    client_s: float
    server_s: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation that was run.

    Attributes:
        request: What was asked for.
        collection: The users' values.
        outcomes: One for each mechanism.
    """

    request: Request
    collection: Collection
    outcomes: tuple[Outcome, ...]


def numbers(settings: Sequence[str]) -> dict[str, float]:
    """Parameters written as NAME=NUMBER; whole numbers stay whole.

    Raises:
        ConfigurationError: One is written otherwise, or named twice.
    """
    found: dict[str, float] = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        try:
            value = int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
        except ValueError:
            value = math.nan
        if not (name and sign and math.isfinite(value)):
            raise ConfigurationError(f"a parameter is written as NAME=NUMBER, such as functions=1024, not '{setting}'")
        if name in found:
            raise ConfigurationError(f"the parameter '{name}' is given twice; give it once")
        found[name] = value
    return found


def unwatched(name: str, done: int, total: int) -> None:
    """A watcher that does not look."""


def simulate(request: Request, collection: Collection, watcher: Watcher = unwatched) -> Simulation:
    """Runs every mechanism on the values.

    Args:
        request: What is to be simulated.
        collection: The values.
        watcher: Called with the progress.

    Raises:
        ConfigurationError: A mechanism is unknown, or does not fit the budget, the domain or the post-processing.
    """
    chosen: dict[str, tuple[FrequencyOracle, str]] = {}
    for name in request.mechanisms:
        found, reason = _chosen(name, request, collection)
        if found.name not in chosen or reason:
            chosen[found.name] = found, reason
    _check_parameters(chosen, request.parameters)
    if request.post_processing is not None:
        for found, _ in chosen.values():
            _check_post_processing(found, request.post_processing)
    root = Randomness.from_os() if request.seed is None else Randomness.from_seed(request.seed)
    outcomes = [
        _outcome(found, reason, request, collection, root.derive("mechanism", found.name), watcher)
        for found, reason in chosen.values()
    ]
    return Simulation(request, collection, tuple(outcomes))


def _chosen(name: str, request: Request, collection: Collection) -> tuple[FrequencyOracle, str]:
    if name == AUTO:
        choice = choose(collection.domain, request.epsilon, n=len(collection.codes))
        return choice.oracle.with_params(**_of(choice.oracle.name, request.parameters)), choice.reason
    return oracle(name, collection.domain, request.epsilon, **_of(name, request.parameters)), ""


def _of(name: str, parameters: Mapping[str, float]) -> dict[str, float]:
    """The parameters that a mechanism has.

    Raises:
        ConfigurationError: One of them is no whole number, and ought to be.
    """
    if name not in oracle_names():
        return {}  # refused as a mechanism
    known = settable(name)
    for each, value in parameters.items():
        if known.get(each) is int and not isinstance(value, int):
            raise ConfigurationError(f"the parameter '{each}' of {name} is a whole number, not {value:g}")
    return {each: value for each, value in parameters.items() if each in known}


def _check_parameters(names: Iterable[str], parameters: Mapping[str, float]) -> None:
    """Refuses a parameter that no mechanism has."""
    known = {name: list(settable(name)) for name in names}
    for each in parameters:
        if not any(each in found for found in known.values()):
            known_parameters = "; ".join(f"{name} has {', '.join(found) or 'none'}" for name, found in known.items())
            raise ConfigurationError(f"there is no parameter '{each}'; of those that can be set, {known_parameters}")


def _check_post_processing(found: FrequencyOracle, method: str) -> None:
    """Refuses a method that does not fit, before the work."""
    uniform = np.full(found.domain.size, 1 / found.domain.size)
    consistent(Estimate(found.domain, 1, uniform, uniform), found, method)


def _outcome(
    found: FrequencyOracle,
    reason: str,
    request: Request,
    collection: Collection,
    rng: Randomness,
    watcher: Watcher,
) -> Outcome:
    counts = collection.counts.astype(np.float64)
    theory = found.variance(counts, len(collection.codes))
    seen, seconds = _Errors(counts, request.top), np.zeros(2)
    first: tuple[Estimate, Floats, Floats, Floats | None] | None = None
    for run in range(request.runs):
        mechanism = _fresh(found, run)
        estimate, took = collected(mechanism, collection.codes, rng.derive("run", run), partial(watcher, found.name))
        low, high = estimate.intervals(request.confidence)
        processed = None
        if request.post_processing is not None:
            processed = consistent(estimate, mechanism, request.post_processing).counts
        seen.add(estimate.counts, low, high, processed)
        seconds += took
        first = first or (estimate, low, high, processed)
    assert first is not None
    client_s, server_s = (float(each) for each in seconds / request.runs)
    return Outcome(found, reason, *first, np.sqrt(theory), seen.over_all_runs(theory), client_s, server_s)


def _fresh(found: FrequencyOracle, run: int) -> FrequencyOracle:
    """The mechanism for a run: theory of sketches is over the draw of their public functions, so each takes others."""
    salt = found.get_params().get("salt")
    return found.with_params(salt=salt + run) if run and isinstance(salt, int) else found


class _Errors:
    """Sums over runs of how far estimates lie from the true counts."""

    def __init__(self, counts: Floats, top: int) -> None:
        self._counts = counts
        self._top = np.argsort(-counts, kind="stable")[:top]
        self._runs = 0
        self._squares = self._absolute = self._largest = self._processed_squares = 0.0
        self._covered = self._found = 0
        self._processed = False

    def add(self, estimates: Floats, low: Floats, high: Floats, processed: Floats | None) -> None:
        """Adds a run."""
        counts, distances = self._counts, np.abs(estimates - self._counts)
        best = np.argsort(-estimates, kind="stable")[: len(self._top)]
        self._runs += 1
        self._squares += float(np.square(distances).sum())
        self._absolute += float(distances.sum())
        self._largest = max(self._largest, float(distances.max()))
        self._covered += int(((low <= counts) & (counts <= high)).sum())
        self._found += int(np.isin(self._top, best).sum())
        if processed is not None:
            self._processed = True
            self._processed_squares += float(np.square(processed - counts).sum())

    def over_all_runs(self, theory: Floats) -> Errors:
        """What came of them, beside theoretical variances at the true counts."""
        looked_at = self._runs * len(self._counts)
        return Errors(
            rmse=math.sqrt(self._squares / looked_at),
            theory_rmse=math.sqrt(theory.mean()),
            chance=math.sqrt(np.square(theory).sum() / (2 * self._runs)) / float(theory.sum()),
            mean_absolute=self._absolute / looked_at,
            largest=self._largest,
            coverage=self._covered / looked_at,
            top_found=self._found / (self._runs * len(self._top)),
            post_processed_rmse=math.sqrt(self._processed_squares / looked_at) if self._processed else None,
        )


def collected(
    found: FrequencyOracle, codes: Codes, rng: Randomness, report_progress: Callable[[int, int], None]
) -> tuple[Estimate, Floats]:
    """One collection, and the seconds of clients and server; reports how many users have reported."""
    # The mechanism takes numbers; its labels are for the reader of the estimates.
    mechanism = found.with_params(domain=found.domain.size)
    server: Aggregator[Estimate] = Aggregator(mechanism)
    batch = max(BATCH_BYTES // mechanism.report_bytes, 64)
    seconds = np.zeros(2)
    for start in range(0, len(codes), batch):
        began = time.perf_counter()
        reports = mechanism.privatise(codes[start : start + batch], rng)
        perturbed = time.perf_counter()
        server.add(reports)
        seconds += perturbed - began, time.perf_counter() - perturbed
        report_progress(start + len(reports), len(codes))
    began = time.perf_counter()
    estimate = server.estimate()
    seconds[1] += time.perf_counter() - began
    return Estimate(found.domain, estimate.n, estimate.counts, estimate.variances), seconds
