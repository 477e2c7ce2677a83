"""The toy table, small random problems and checks of a published table, for the tests of full-domain recoding."""

from __future__ import annotations

import csv
import itertools
import pathlib
from collections import Counter

import numpy as np
import pyarrow.csv as arrow_csv
from hypothesis import strategies as st

from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import (
    AlphaK,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    TCloseness,
)
from anonymize.release import Release
from anonymize.roles import Roles
from anonymize.tables import Table

TOY_ROWS = [
    (21, "114235", "HIV"),
    (26, "114751", "HIV"),
    (25, "115032", "Flu"),
    (48, "124151", "Diabetes"),
    (32, "115012", "Cancer"),
    (45, "115451", "Fever"),
    (35, "115313", "Hepatitis"),
    (50, "113726", "Flu"),
]


def toy() -> tuple[Table, dict[str, Hierarchy]]:
    """The toy table: ages with decades, two bands and *, codes with three digits, two digits and *."""
    ages, codes, diseases = zip(*TOY_ROWS, strict=True)
    data = {"age": list(ages), "zip": list(codes), "disease": list(diseases)}
    table = Table.of(data, Roles((), ("age", "zip"), ("disease",), ()), kinds={"zip": "code"})
    decades = [(str(a), f"{a // 10 * 10}s", "20-39" if a < 40 else "40-59", "*") for a in sorted(ages)]
    zips = [(c, c[:3] + "***", c[:2] + "****", "*") for c in sorted(codes)]
    return table, {"age": Hierarchy.of("age", decades), "zip": Hierarchy.of("zip", zips)}


ADULT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")


def adult(shared_data: pathlib.Path) -> tuple[Table, dict[str, Hierarchy]]:
    """30,162 records, eight quasi-identifiers in the order of `ADULT`, occupation sensitive."""
    folder = shared_data / "adult"
    data = arrow_csv.read_csv(folder / "adult.csv", parse_options=arrow_csv.ParseOptions(delimiter=";"))
    table = Table.of(data, Roles((), ADULT, ("occupation",), ()))
    return table, {name: adult_hierarchy(folder, name) for name in ADULT}


def adult_hierarchy(folder: pathlib.Path, name: str) -> Hierarchy:
    with (folder / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
        return Hierarchy.of(name, list(csv.reader(file, delimiter=";")))


@st.composite
def problems(draw: st.DrawFn, columns: int = 3) -> tuple[Table, dict[str, Hierarchy]]:
    """A random small table with random nested hierarchies, a sensitive column s and an ordered one, v."""
    d = draw(st.integers(1, columns))
    n = draw(st.integers(1, 24))
    data: dict[str, list[object]] = {}
    hierarchies = {}
    for j in range(d):
        size = draw(st.integers(1, 6))
        data[f"q{j}"] = [f"v{value}" for value in draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))]
        hierarchies[f"q{j}"] = draw(nested_hierarchies(f"q{j}", size))
    data["s"] = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    data["v"] = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    names = tuple(f"q{j}" for j in range(d))
    return Table.of(data, Roles((), names, ("s", "v"), ())), hierarchies


@st.composite
def nested_hierarchies(draw: st.DrawFn, name: str, size: int) -> Hierarchy:
    """Leaves v0 … merged at random from level to level, up to one value."""
    label = list(range(size))
    rows = [[f"v{value}"] for value in range(size)]
    for level in range(1, draw(st.integers(0, 2)) + 1):
        parents = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
        label = [parents[code] for code in label]
        for row, code in zip(rows, label, strict=True):
            row.append(f"{level}:{code}")
    if len({row[-1] for row in rows}) > 1:
        for row in rows:
            row.append("*")
    return Hierarchy.of(name, rows)


@st.composite
def requirements(draw: st.DrawFn) -> Requirements:
    """k-anonymity and perhaps one more model, of every kind of monotonicity."""
    k = draw(st.integers(1, 4))
    other = draw(
        st.sampled_from(
            [
                None,
                DistinctDiversity(2, "s"),
                EntropyDiversity(2, "s"),
                RecursiveDiversity(2, 2, "s"),
                TCloseness(0.3, "s"),
                TCloseness(0.25, "v", distance="ordered"),
                PSensitive(2, ("s", "v")),
                AlphaK(0.7, "s"),
            ]
        )
    )
    return Requirements((KAnonymity(k),) if other is None else (KAnonymity(k), other))


def check_published(release: Release, table: Table, hierarchies: dict[str, Hierarchy], required: Requirements) -> None:
    """Verifies a release by its published table alone, plus that its cells cover the input."""
    fitted = required.fitted(table)
    assert release.rows is not None
    assert release.classes is not None
    assert len(release.rows) == release.table.num_rows == len(release.classes)
    quasi = [table.columns[name] for name in table.roles.quasi_identifiers]
    published = release.table.to_pydict()
    tuples = list(zip(*(map(str, published[column.name]) for column in quasi), strict=True))
    counted = [t for t, label in zip(tuples, release.classes, strict=True) if label >= 0]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(counted))}
    assert len(numbers) == release.n_classes
    if numbers:
        labels = np.array([numbers[t] for t in counted])
        sizes = np.array([Counter(counted)[key] for key in numbers])
        chosen = release.rows[release.classes >= 0]
        sensitive = {}
        for name in fitted.columns:
            column = table.columns[name]
            counts = np.zeros((len(numbers), column.size), np.int64)
            np.add.at(counts, (labels, column.codes[chosen]), 1)
            sensitive[name] = counts
        assert fitted.satisfied(Histograms(sizes, sensitive)).all()
    for row, label, cells in zip(release.rows, release.classes, tuples, strict=True):
        for column, cell in zip(quasi, cells, strict=True):
            hierarchy = hierarchies[column.name]
            leaf = hierarchy.align(column)[column.codes[row]]
            assert cell == "*" or cell in {hierarchy.label(level, leaf) for level in range(hierarchy.height + 1)}
        if label < 0:
            assert row in release.suppressed


def brute_force_nodes(
    table: Table, hierarchies: dict[str, Hierarchy], required: Requirements, allowed: int
) -> dict[tuple[int, ...], int]:
    """Every satisfying node and its number of suppressed records, by counting in dictionaries.

    None where a model refuses beforehand: that everything is suppressed is no solution then.
    """
    fitted = required.fitted(table)
    if fitted.infeasible(table, allowed) is not None:
        return {}
    quasi = [table.columns[name] for name in table.roles.quasi_identifiers]
    leaves = [hierarchies[c.name].align(c)[c.codes] for c in quasi]
    found = {}
    for node in itertools.product(*(range(hierarchies[c.name].height + 1) for c in quasi)):
        labels = [hierarchies[c.name].maps[level][leaf] for c, level, leaf in zip(quasi, node, leaves, strict=True)]
        members: dict[tuple[int, ...], list[int]] = {}
        for row, key in enumerate(zip(*labels, strict=True)):
            members.setdefault(key, []).append(row)
        out = 0
        for rows in members.values():
            columns = [table.columns[name] for name in fitted.columns]
            one = {c.name: np.bincount(c.codes[rows], minlength=c.size)[None] for c in columns}
            if not fitted.satisfied(Histograms(np.array([len(rows)]), one))[0]:
                out += len(rows)
        if out <= allowed:
            found[node] = out
    return found
