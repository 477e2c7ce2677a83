"""Microaggregation, condensation, identity replacement and records as distributions, on Adult."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from anonymize.clustering.gpkc import gpkc
from anonymize.clustering.maa_slie import maa_slie
from anonymize.clustering.mdav import mdav
from anonymize.condensation.static import condense
from anonymize.condensation.streaming import Condenser
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.replacement.ppir import ppir
from anonymize.roles import Roles
from anonymize.tables import Table as Rows
from anonymize.uncertain import publish_as_distributions
from benchmarks import datasets
from benchmarks.settings import Settings
from benchmarks.table import Table
from crypto.primitives.randomness import Randomness

NUMBERS = ("age", "education-num", "hours-per-week", "fnlwgt")
MIXED = ("age", "education-num", "marital-status", "native-country", "workclass", "sex", "race")
TREES = ("marital-status", "native-country", "workclass")
LEVELS = SensitiveLevels(
    2,
    (
        ("Other-service", "Handlers-cleaners", "Farming-fishing", "Priv-house-serv"),
        ("Craft-repair", "Machine-op-inspct", "Transport-moving"),
        ("Tech-support", "Sales", "Adm-clerical"),
        ("Exec-managerial", "Prof-specialty"),
        ("Protective-serv", "Armed-Forces"),
    ),
    "occupation",
    (0.1, 0.2, 0.4, 0.6, 0.8),
)
SMALL = 3_000

Case = tuple[str, int, str, Callable[[], object], float | None]


def run(settings: Settings) -> list[Table]:
    """One table."""
    table = Table(
        "Clustering, condensation and replacement on Adult; CPU seconds of one core",
        ("algorithm", "records", "parameters", "CPU s", "target s"),
        notes=[
            "best of several runs; tables are coded beforehand",
            "of other tools only sdcMicro and anonypyx are known to have MDAV, and none the others",
        ],
    )
    folder = datasets.folder().parent / "adult"
    if not (folder / "adult_45222.csv.gz").is_file():
        table.notes.append("Adult is not here, so nothing was measured")
        return [table]
    data = arrow_csv.read_csv(folder / "adult_45222.csv.gz")
    data = data.slice(0, 600) if settings.quick else data
    trees = {}
    for name in TREES:
        with (folder / f"adult_hierarchy_{name}.csv").open() as lines:
            trees[name] = Hierarchy.of(name, list(csv.reader(lines, delimiter=";")))
    for name, records, parameters, function, target in _cases(data, trees):
        settings.tell(f"{name}, {records:,} records")
        seconds = min(_cpu_seconds(function) for _ in range(settings.repeats))
        table.add(name, records, parameters, seconds, None if settings.quick else target)
    return [table]


def _cases(data: pa.Table, trees: dict[str, Hierarchy]) -> list[Case]:
    def rng() -> Randomness:
        return Randomness.from_seed(1)

    cases: list[Case] = []
    for n, k, target in ((30_162, 3, 0.8), (30_162, 10, None), (45_222, 3, None)):
        numbers = Rows.of(data.select(NUMBERS).slice(0, n), Roles(quasi_identifiers=NUMBERS))
        cases.append(("mdav", numbers.n_rows, f"k = {k}, 4 columns", partial(mdav, numbers, k), target))
    drawn = np.sort(np.random.default_rng(0).choice(data.num_rows, min(SMALL, data.num_rows), replace=False))
    orders = {"education-num": tuple(range(1, 17))}
    roles = Roles(quasi_identifiers=MIXED, sensitive=("occupation",))
    for records, target in ((data.take(drawn), 0.3), (data, 4.0)):
        mixed = Rows.of(records.select((*MIXED, "occupation")), roles, orders=orders)
        for p in (2, 5):
            slie = partial(_slie, mixed, p, trees, rng)
            cases.append(("maa-slie", mixed.n_rows, f"k = 8, p = {p}, H = 2, 7 columns", slie, target))
        greedy = partial(_gpkc, mixed, trees, rng)
        cases.append(("gpkc", mixed.n_rows, "k = 8, p = 2, H = 2, 7 columns", greedy, None))
    numbers = Rows.of(data.select(NUMBERS), Roles(quasi_identifiers=NUMBERS))
    points = np.stack([data[name].to_numpy().astype(float) for name in NUMBERS], axis=1)
    cases += [
        ("condensation", numbers.n_rows, "k = 10, 4 columns", lambda: condense(numbers, 10, rng=rng()), None),
        ("condensation, stream", len(points), "k = 10, 4 columns", lambda: _stream(points), None),
        ("ppir", numbers.n_rows, "4 columns, 0.8 ≤ α", lambda: _ppir(numbers, rng()), None),
    ]
    few = Rows.of(data.select(NUMBERS).take(drawn), Roles(quasi_identifiers=NUMBERS))
    spread = partial(_distributions, few, rng)
    cases.append(("distributions", few.n_rows, "k = 5, 4 columns", spread, None))
    return cases


def _slie(rows: Rows, p: int, trees: dict[str, Hierarchy], rng: Callable[[], Randomness]) -> object:
    return maa_slie(rows, 8, p, LEVELS, rng=rng(), hierarchies=trees)


def _gpkc(rows: Rows, trees: dict[str, Hierarchy], rng: Callable[[], Randomness]) -> object:
    return gpkc(rows, 8, 2, levels=LEVELS, rng=rng(), hierarchies=trees)


def _stream(points: np.ndarray) -> object:  # type: ignore[type-arg]
    condenser = Condenser(NUMBERS, 10, origins=points.mean(axis=0), units=points.std(axis=0))
    condenser.add(points)
    return condenser


def _ppir(rows: Rows, rng: Randomness) -> object:
    ranges = {"age": 5, "education-num": 1, "hours-per-week": 5, "fnlwgt": 10_000}
    return ppir(rows, ranges, rng=rng, alpha=(0.8, 1.0))


def _distributions(rows: Rows, rng: Callable[[], Randomness]) -> object:
    return publish_as_distributions(rows, 5, rng=rng())


def _cpu_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start
