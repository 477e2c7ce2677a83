"""Tables to cluster, and Adult as the experiments of MAA-SLIE take it."""

from __future__ import annotations

import csv
import gzip
import pathlib

import numpy as np
import pyarrow.csv

from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.sensitive_levels import SensitiveLevels
from anonymize.roles import Roles
from anonymize.tables import Table

WEIGHTS = (0.1, 0.2, 0.4, 0.6, 0.8)
OCCUPATIONS = (
    ("Other-service", "Handlers-cleaners", "Farming-fishing", "Priv-house-serv"),
    ("Craft-repair", "Machine-op-inspct", "Transport-moving"),
    ("Tech-support", "Sales", "Adm-clerical"),
    ("Exec-managerial", "Prof-specialty"),
    ("Protective-serv", "Armed-Forces"),
)
QUASI_IDENTIFIERS = ("age", "education-num", "marital-status", "native-country", "workclass", "sex", "race")
PLACES = Hierarchy.of("place", [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"], ["e", "y", "*"]])
ILLNESSES = (("flu", "cold"), ("asthma", "gout"), ("hiv",))


def patients(n: int, seed: int) -> Table:
    """Random patients with attributes of all kinds, many of them alike; n ≥ 5, so that there is every illness."""
    rng = np.random.default_rng(seed)
    illnesses = ["flu", "cold", "asthma", "gout", "hiv"]
    data = {
        "age": rng.integers(20, 30, n).tolist(),
        "grade": rng.choice(["low", "middle", "high"], n).tolist(),
        "place": rng.choice(list("abcde"), n).tolist(),
        "smokes": rng.choice([True, False], n).tolist(),
        "illness": illnesses + rng.choice(illnesses, n - 5, p=[0.4, 0.2, 0.2, 0.1, 0.1]).tolist(),
    }
    return Table.of(
        data,
        Roles((), ("age", "grade", "place", "smokes"), ("illness",), ()),
        orders={"grade": ("low", "middle", "high")},
    )


def illness_levels(h: int) -> SensitiveLevels:
    """Three levels of sensitivity of the patients' illnesses."""
    return SensitiveLevels(h, ILLNESSES, "illness", (0.2, 0.5, 0.9))


def adult(shared_data: pathlib.Path, n: int | None = None, seed: int = 0) -> tuple[Table, dict[str, Hierarchy]]:
    """Adult with seven quasi-identifiers and the occupation, all 45,222 records or n drawn ones; and its trees."""
    folder = shared_data / "adult"
    with gzip.open(folder / "adult_45222.csv.gz") as file:
        data = pyarrow.csv.read_csv(file).select([*QUASI_IDENTIFIERS, "occupation"])
    if n is not None:
        data = data.take(np.sort(np.random.default_rng(seed).choice(data.num_rows, n, replace=False)))
    roles = Roles((), QUASI_IDENTIFIERS, ("occupation",), ())
    trees = {}
    for name in ("marital-status", "native-country", "workclass"):
        with (folder / f"adult_hierarchy_{name}.csv").open() as file:
            trees[name] = Hierarchy.of(name, list(csv.reader(file, delimiter=";")))
    return Table.of(data, roles, orders={"education-num": tuple(range(1, 17))}), trees


def occupation_levels(h: int) -> SensitiveLevels:
    """Five levels of sensitivity of the occupations of Adult."""
    return SensitiveLevels(h, OCCUPATIONS, "occupation", WEIGHTS)
