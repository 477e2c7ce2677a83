"""Tables for the experiments: Adult where its file is given, else made ones of the same shape."""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from anonymize import Hierarchy, Roles, SensitiveLevels, Table

WEIGHTS = (0.1, 0.2, 0.4, 0.6, 0.8)
OCCUPATIONS = (
    ("Other-service", "Handlers-cleaners", "Farming-fishing", "Priv-house-serv"),
    ("Craft-repair", "Machine-op-inspct", "Transport-moving"),
    ("Tech-support", "Sales", "Adm-clerical"),
    ("Exec-managerial", "Prof-specialty"),
    ("Protective-serv", "Armed-Forces"),
)
QUASI_IDENTIFIERS = ("age", "education-num", "marital-status", "native-country", "workclass", "sex", "race")
TREES = {
    "marital-status": ("spouse", "no spouse"),
    "native-country": ("north", "south", "east", "west"),
    "workclass": ("public", "private"),
}


def seeded(seed: int) -> random.Random:
    """Numbers that are the same in each run of an experiment."""
    return random.Random(seed)  # noqa: S311 - made data, no secret


def census(folder: Path | None) -> tuple[pa.Table, dict[str, Hierarchy]]:
    """The seven quasi-identifiers, the occupation, and trees.

    Args:
        folder: Holds `adult_45222.csv.gz` and `adult_hierarchy_….csv`; without it a table of 6,000 rows is made.
    """
    if folder is None:
        return _made(6_000)
    with gzip.open(folder / "adult_45222.csv.gz") as file:
        data = pyarrow.csv.read_csv(file).select([*QUASI_IDENTIFIERS, "occupation"])
    trees = {}
    for name in TREES:
        with (folder / f"adult_hierarchy_{name}.csv").open() as lines:
            trees[name] = Hierarchy.of(name, list(csv.reader(lines, delimiter=";")))
    return data, trees


def as_table(data: pa.Table) -> Table:
    """The census with its roles."""
    roles = Roles(quasi_identifiers=QUASI_IDENTIFIERS, sensitive=("occupation",))
    return Table.of(data, roles, orders={"education-num": tuple(range(1, 17))})


def levels(h: int) -> SensitiveLevels:
    """Five levels of sensitivity of the occupations; the paper lists none, so these are a proposal."""
    return SensitiveLevels(h, OCCUPATIONS, "occupation", WEIGHTS)


def patients(n: int, ages: Sequence[int], draw: random.Random) -> Table:
    """Sex, age, height, weight and a disease of n people, as in the experiments of PPIR."""
    data = {
        "sex": draw.choices(("f", "m"), k=n),
        "age": draw.choices(ages, k=n),
        "height": [draw.gauss(170, 10) for _ in range(n)],
        "weight": [max(draw.gauss(65, 12), 30.0) for _ in range(n)],
        "disease": draw.choices(("flu", "gout", "asthma", "diabetes", "HIV"), (40, 20, 20, 15, 5), k=n),
    }
    return Table.of(data, Roles(quasi_identifiers=("sex", "age", "height", "weight"), sensitive=("disease",)))


def _made(n: int) -> tuple[pa.Table, dict[str, Hierarchy]]:
    draw = seeded(1)
    values = {name: [f"{branch} {i}" for branch in branches for i in range(1, 5)] for name, branches in TREES.items()}
    trees = {name: Hierarchy.of(name, [[value, value[:-2], "*"] for value in found]) for name, found in values.items()}
    occupations = [occupation for level in OCCUPATIONS for occupation in level]
    data = {
        "age": [min(max(int(draw.gauss(38, 13)), 17), 90) for _ in range(n)],
        "education-num": [min(max(int(draw.gauss(10, 2.5)), 1), 16) for _ in range(n)],
        **{name: draw.choices(found, [1 / (i + 1) for i in range(len(found))], k=n) for name, found in values.items()},
        "sex": draw.choices(("Female", "Male"), (1, 2), k=n),
        "race": draw.choices(("A", "B", "C"), (8, 1, 1), k=n),
        "occupation": draw.choices(occupations, k=n),
    }
    return pa.table(data), trees
