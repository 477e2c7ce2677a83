"""Full-domain recoding and Mondrian on Adult beside what other tools were measured to take, and a million rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.csv as arrow_csv

from anonymize.fulldomain.datafly import datafly
from anonymize.fulldomain.incognito import incognito
from anonymize.fulldomain.local_recoding import local_recode
from anonymize.fulldomain.optimal import optimal
from anonymize.fulldomain.samarati import samarati
from anonymize.grouping import group
from anonymize.hierarchies.files import from_csv
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import DistinctDiversity, EntropyDiversity, KAnonymity, Model, Requirements, TCloseness
from anonymize.multidimensional.mondrian import mondrian
from anonymize.multidimensional.partition import Mode
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table as Rows
from benchmarks import datasets
from benchmarks.measure import run_process
from benchmarks.settings import Settings
from benchmarks.table import Cell, Table

COLUMNS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
FULL_DOMAIN: tuple[tuple[Callable[..., Release], str, str], ...] = (
    (optimal, "0", ""),
    (optimal, "0.02", ""),
    (optimal, "1", ""),
    (optimal, "0.02", "distinct l = 3"),
    (optimal, "0.02", "entropy l = 3"),
    (optimal, "0.02", "t = 0.3"),
    (samarati, "0.02", ""),
    (incognito, "0.02", ""),
    (datafly, "0.02", ""),
    (local_recode, "0", ""),
)
MODELS: dict[str, tuple[Model, ...]] = {
    "": (),
    "distinct l = 3": (DistinctDiversity(3, "occupation"),),
    "entropy l = 3": (EntropyDiversity(3, "occupation"),),
    "t = 0.3": (TCloseness(0.3, "occupation"),),
}
# ARX 3.9.2 on the same records and columns, measured once on two such cores: wall seconds of anonymize() in a warm JVM,
# then GCP.
KNOWN = {
    ("0", ""): (0.09, 0.6250),
    ("0.02", ""): (0.68, 0.2772),
    ("1", ""): (0.9, 0.1691),
    ("0.02", "distinct l = 3"): (0.97, 0.2776),
}
ANJANA = {"0": "0", "0.02": "2"}  # the share of suppressed rows, in per cent as it takes it
PEERS = Path(__file__).parent.parent / "peers" / "anonymizers.py"
KNOWN_MONDRIAN = "Mondrian/strict (qiyuangong) 0.27 s, umbra-k 4.60 s, anonypyx 14.75 s for k = 10, CPU"


def run(settings: Settings) -> list[Table]:
    """All tables."""
    adult = _adult()
    tables = []
    if adult is not None:
        tables += [_full_domain(settings, *adult), _checks(settings, adult[0]), _mondrian(settings, *adult)]
    tables.append(_many_rows(settings))
    if adult is None:
        tables[0].notes.append(f"Adult is skipped: no data in {_folder()}; set COMINE_REFERENCE_DATA")
    return tables


def _full_domain(settings: Settings, rows: Rows, hierarchies: dict[str, Hierarchy]) -> Table:
    table = Table(
        f"Full-domain recoding of Adult: {rows.n_rows:,} rows, {len(COLUMNS)} quasi-identifiers, k = 5; CPU seconds",
        (
            "algorithm",
            "MaxSup",
            "model",
            "s",
            "checks",
            "classes",
            "suppressed",
            "GCP",
            "ARX s",
            "ARX GCP",
            "anjana s",
            "anjana GCP",
        ),
        notes=[
            "ours: the whole call from the coded table to the release, without reading files",
            "ARX: wall time in a warm JVM, without its start, as measured once and not run here",
        ],
    )
    for algorithm, share, model in FULL_DOMAIN:
        name = algorithm.__name__
        settings.tell(f"{name}, MaxSup {share} {model}")
        required = Requirements((KAnonymity(5), *MODELS[model]))
        seconds, made = _best(lambda: algorithm(rows, hierarchies, required, max_suppression=share), settings)  # noqa: B023
        known: tuple[Cell, ...] = (None,) * 4
        if name == "optimal":
            theirs = _peer(settings, "anjana", "--suppressed", ANJANA[share]) if share in ANJANA and not model else {}
            known = (*KNOWN.get((share, model), (None, None)), theirs.get("seconds"), theirs.get("gcp"))
        table.add(
            name,
            share,
            model,
            seconds,
            made.statistics["checked"],
            made.n_classes,
            len(made.suppressed),
            _gcp(made),
            *known,
        )
    return table


def _checks(settings: Settings, rows: Rows) -> Table:
    table = Table(
        f"Checks of models on {rows.n_rows:,} raw rows, {len(COLUMNS)} quasi-identifiers; CPU seconds",
        ("model", "s", "pycanon s", "ratio"),
        notes=["ours: from the coded table to the verdict on every class"],
    )
    theirs = _peer(settings, "pycanon")
    checked: dict[str, Model] = {
        "k": KAnonymity(5),
        "l": DistinctDiversity(3, "occupation"),
        "t": TCloseness(0.3, "occupation"),
    }
    for name, model in checked.items():
        required = Requirements((model,)).fitted(rows)
        spent = []
        for _ in range(settings.repeats):
            began = time.process_time()
            labels, classes = group(rows.quasi_codes, rows.n_rows)
            required.check(labels, classes, [rows.columns["occupation"]])
            spent.append(time.process_time() - began)
        other = theirs.get(name)
        table.add(name, min(spent), other, None if other is None else other / min(spent))
    return table


def _peer(settings: Settings, *arguments: str) -> dict[str, float]:
    """What a peer tells; nothing where it is not installed."""
    if settings.anonymize_peers_python is None:
        return {}
    settings.tell(" ".join(arguments))
    tool, *options = arguments
    finished = run_process([settings.anonymize_peers_python, "-W", "ignore", PEERS, tool, _folder(), *options])
    return dict(json.loads(finished.output.strip().splitlines()[-1]))


def _mondrian(settings: Settings, rows: Rows, hierarchies: dict[str, Hierarchy]) -> Table:
    table = Table(
        f"Mondrian on Adult: {rows.n_rows:,} rows, {len(COLUMNS)} quasi-identifiers; CPU seconds",
        ("mode", "k", "s", "regions", "classes", "smallest", "GCP"),
        notes=[f"others, on eight columns of Adult: {KNOWN_MONDRIAN}; measured once, not run here"],
    )
    modes: tuple[Mode, ...] = ("strict", "relaxed", "hierarchical")
    for mode in modes:
        for k in (5, 10):
            settings.tell(f"mondrian {mode}, k = {k}")
            required = Requirements((KAnonymity(k),))
            seconds, made = _best(lambda: mondrian(rows, required, mode=mode, hierarchies=hierarchies), settings)  # noqa: B023
            table.add(
                mode, k, seconds, made.statistics["regions"], made.n_classes, int(made.class_sizes.min()), _gcp(made)
            )
    return table


def _many_rows(settings: Settings) -> Table:
    n = 20_000 if settings.quick else 1_000_000
    table = Table(
        f"Mondrian on {n:,} synthetic rows, 8 quasi-identifiers of 10,000, 1,000 and fewer values; CPU seconds",
        ("mode", "k", "s", "regions", "smallest", "GCP"),
    )
    draw = np.random.default_rng(1)
    sizes = (10_000, 1_000, 100, 41, 16, 7, 5, 2)
    data = {f"q{size}": np.minimum(draw.geometric(min(4 / size, 0.5), n), size) for size in sizes}
    rows = Rows.of({**data, "s": draw.integers(0, 10, n)}, Roles((), tuple(data), ("s",), ()))
    modes: tuple[Mode, ...] = ("strict", "relaxed")
    for mode in modes:
        settings.tell(f"mondrian {mode} on {n:,} rows")
        required = Requirements((KAnonymity(5),))
        seconds, made = _best(lambda: mondrian(rows, required, mode=mode), settings)  # noqa: B023
        table.add(mode, 5, seconds, made.statistics["regions"], int(made.class_sizes.min()), _gcp(made))
    return table


def _best(call: Callable[[], Release], settings: Settings) -> tuple[float, Release]:
    """CPU seconds of the best of several runs, and what the last returned."""
    spent = []
    for _ in range(settings.repeats):
        began = time.process_time()
        made = call()
        spent.append(time.process_time() - began)
    return min(spent), made


def _gcp(made: Release) -> float:
    assert made.cell_loss is not None
    return float(made.cell_loss.mean())


def _folder() -> Path:
    return datasets.folder().parent / "adult"


def _adult() -> tuple[Rows, dict[str, Hierarchy]] | None:
    folder = _folder()
    if not (folder / "adult.csv").is_file():
        return None
    data = arrow_csv.read_csv(folder / "adult.csv", parse_options=arrow_csv.ParseOptions(delimiter=";"))
    hierarchies = {}
    for name in COLUMNS:
        hierarchies[name] = from_csv(folder / f"adult_hierarchy_{name}.csv", ";", name=name)
    return Rows.of(data, Roles((), COLUMNS, ("occupation",), ())), hierarchies
