"""Methods of continual release on streams: errors, reports and processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.settings import Settings
from benchmarks.table import Table
from crypto.primitives.randomness import Randomness
from ldp.streams.methods import METHODS, stream_method
from ldp.streams.simulation import Run, simulate
from ldp.streams.synthetic import Step, binary, coming_and_going, drifting, linear, logistic, sine

EPSILON = 1.0
WINDOW = 20
USERS = 100_000
STEPS = 200
SEEDS = 5
CATEGORIES = 16


def run(settings: Settings) -> list[Table]:
    """A row for each stream and method."""
    users, steps, seeds = (1_000, 20, 1) if settings.quick else (USERS, STEPS, SEEDS)
    table = Table(
        f"Streams: {users:,} users, {steps} steps, ε = {EPSILON:g} within any {WINDOW} of them",
        ("stream, method", "RMSE", "relative error", "steps published", "reports per user and step", "ms per step"),
        notes=[
            f"root of the mean squared error over steps, values and {seeds} seeds; relative to 0.001 at least",
            "ms of processor time, of clients and server together, without making the stream",
        ],
    )
    for title, (d, make) in _streams(users, steps).items():
        settings.tell(title)
        runs: dict[str, list[Run]] = {name: [] for name in METHODS}
        spent = dict.fromkeys(METHODS, 0.0)
        for seed in range(seeds):
            stream = list(make(Randomness.from_seed(seed).derive("stream")))
            for name in METHODS:
                began = time.process_time()
                method = stream_method(name, d, EPSILON, WINDOW)
                runs[name].append(simulate(method, stream, users, Randomness.from_seed(seed)))
                spent[name] += time.process_time() - began
        for name, found in runs.items():
            table.add(
                f"{title}, {name}",
                float(np.sqrt(np.mean([each.mse for each in found]))),
                float(np.mean([each.mre() for each in found])),
                float(np.mean([each.fresh.mean() for each in found])),
                float(np.mean([each.reports.mean() for each in found])),
                1000 * spent[name] / (seeds * steps),
            )
    return [table]


def _streams(users: int, steps: int) -> dict[str, tuple[int, Callable[[Randomness], Iterable[Step]]]]:
    def drift(rng: Randomness) -> Iterable[Step]:
        return drifting(CATEGORIES, users, steps, rng)

    return {
        "linear": (2, lambda rng: binary(linear(steps, rng), users, rng)),
        "sine": (2, lambda rng: binary(sine(steps), users, rng)),
        "logistic": (2, lambda rng: binary(logistic(steps), users, rng)),
        "jumps": (2, lambda rng: binary(np.where(np.arange(steps) % 74 < 37, 0.1, 0.4), users, rng)),
        f"drift of {CATEGORIES} values": (CATEGORIES, drift),
        "the same, users come and go": (CATEGORIES, lambda rng: coming_and_going(drift(rng), users, rng)),
    }
