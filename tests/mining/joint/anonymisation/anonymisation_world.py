"""Rows of several parties, and what is found for them where they lie in one place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
from hypothesis import strategies as st
from numpy.typing import NDArray

from anonymize.grouping import Histograms
from anonymize.hierarchies.files import from_csv
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Model, Requirements
from anonymize.release import allowed_suppression
from anonymize.roles import Roles
from anonymize.tables import Table as WholeTable
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.joint.anonymisation.anonymise import JointRelease, anonymise
from mining.joint.anonymisation.disclosure import openings
from mining.joint.anonymisation.parameters import Carried, JointAnonymisation, QuasiIdentifier
from protos.v1.link_pb2 import Frame
from tests.mining.joint.models.models_world import run

PARTIES = ("north", "south", "east", "west", "centre")

AGES = Hierarchy.of("age", [(str(age), f"{age // 2 * 2}-", "young" if age < 6 else "old", "*") for age in range(10)])
TOWNS = Hierarchy.of("town", [("A", "left", "*"), ("B", "left", "*"), ("C", "right", "*")])
SEXES = Hierarchy.of("sex", [("f", "*"), ("m", "*")])
ILLS = ("flu", "cold", "ulcer", "")
CARRIED = (
    Carried("ill", "sensitive", "tree", tuple(sorted(ILLS)), 5),
    Carried("note", "insensitive", "tree", None, 6),
)

QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
"""Of the Adult table."""

Cells = dict[str, list[str]]


def task(parties: Sequence[str], *, k: int = 3, models: Sequence[Model] = (), **changes: Any) -> JointAnonymisation:
    """A task over the columns above."""
    fields: dict[str, Any] = {
        "quasi_identifiers": (
            QuasiIdentifier("age", "numeric", AGES),
            QuasiIdentifier("town", "tree", TOWNS),
            QuasiIdentifier("sex", "tree", SEXES),
        ),
        "carried": (Carried("ill", "sensitive", "tree", ILLS, 5), Carried("note", "insensitive", "tree", None, 6)),
        "requirements": Requirements((KAnonymity(k), *models)),
        "max_suppression": Decimal(0),
        "algorithm": "optimal",
        "insider_k": 1,
        "k_site": None,
        "origin": "hidden",
        "compute": (parties[0], parties[1]),
        "learners": tuple(parties),
    }
    return JointAnonymisation(**{**fields, **changes})


def people(n_rows: int, seed: int) -> Cells:
    """Rows some of which are rare."""
    chance = np.random.default_rng(seed)
    ages = np.minimum(chance.geometric(0.25, n_rows) - 1, 9)
    towns = chance.choice(3, n_rows, p=(0.6, 0.3, 0.1))
    return {
        "age": list(map(str, ages.tolist())),
        "town": [("A", "B", "C")[each] for each in towns.tolist()],
        "sex": [("f", "m")[each] for each in chance.integers(0, 2, n_rows).tolist()],
        "ill": [ILLS[each] for each in chance.integers(0, 4, n_rows).tolist()],
        "note": [f"n{each}" if each else "" for each in chance.integers(0, 99, n_rows).tolist()],
    }


def table(cells: Mapping[str, Sequence[str]]) -> Table:
    return table_from_arrow(
        pa.table({name: pa.array(column, pa.string()) for name, column in cells.items()}), (), "the test"
    )


def parted(cells: Cells, owners: NDArray[np.int64], parties: Sequence[str]) -> dict[str, Table]:
    """By party the rows that it owns."""
    return {
        party: table({name: [column[row] for row in np.flatnonzero(owners == place)] for name, column in cells.items()})
        for place, party in enumerate(parties)
    }


def joint(
    cells: Cells,
    owners: NDArray[np.int64],
    parties: Sequence[str],
    wanted: JointAnonymisation,
    *,
    frames: list[Frame] | None = None,
    seed: int = 0,
    transport: Literal["memory", "grpc"] = "memory",
) -> dict[str, JointRelease]:
    """Every party's outcome."""
    return run(
        parted(cells, owners, parties),
        lambda session, own: anonymise(session, own, wanted),
        openings(wanted, parties),
        frames=frames,
        seed=seed,
        transport=transport,
    )


def whole(cells: Cells, orders: Mapping[str, Sequence[str]] = MappingProxyType({})) -> WholeTable:
    """All rows as the library takes them."""
    roles = Roles(quasi_identifiers=("age", "town", "sex"), sensitive=("ill",), insensitive=("note",))
    data = {**cells, "age": list(map(int, cells["age"]))}
    return WholeTable.of(data, roles, orders=orders, missing="value")


def hierarchies() -> dict[str, Hierarchy]:
    return {"age": AGES, "town": TOWNS, "sex": SEXES}


def others_fit(parts: NDArray[np.int64], wanted: JointAnonymisation) -> NDArray[np.bool_]:
    """Whether each class leaves every coalition of insiders with enough rows of others, or with none.

    Args:
        parts: Rows of each party in each class, shape (classes, parties).
        wanted: The task.
    """
    fit = np.ones(len(parts), np.bool_)
    for size in range(1, wanted.insiders + 1):
        for members in itertools.combinations(range(parts.shape[1]), size):
            rest = parts.sum(axis=1) - parts[:, list(members)].sum(axis=1)
            fit &= (rest == 0) | (rest >= wanted.insider_k)
    return fit


def exhaustive(
    cells: Cells,
    owners: NDArray[np.int64],
    wanted: JointAnonymisation,
    *,
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[tuple[int, ...], float]:
    """By satisfying node its loss, by looking at each one, the rules on parties' parts included."""
    table_, found = whole(cells, orders), dict[tuple[int, ...], float]()
    fitted = wanted.requirements.fitted(table_)
    allowed = allowed_suppression(wanted.max_suppression, table_.n_rows)
    trees = hierarchies()
    leaves = [trees[column.name].align(column)[column.codes] for column in table_.quasi_identifiers]
    levels = [range(trees[column.name].height + 1) for column in table_.quasi_identifiers]
    for node in itertools.product(*levels):
        told = [
            trees[column.name].maps[level][leaf]
            for column, level, leaf in zip(table_.quasi_identifiers, node, leaves, strict=True)
        ]
        _, labels = np.unique(np.stack(told, axis=1), axis=0, return_inverse=True)
        labels = labels.reshape(-1).astype(np.int64)
        number = int(labels.max()) + 1
        good = fitted.satisfied(Histograms.of(labels, number, table_.sensitive))
        parts = np.zeros((number, len(PARTIES)), np.int64)
        np.add.at(parts, (labels, owners), 1)
        good &= others_fit(parts, wanted)
        if wanted.k_site is not None:
            good &= ((parts == 0) | (parts >= wanted.k_site)).all(axis=1)
        kept = good[labels]
        if (~kept).sum() <= allowed:
            losses = [
                trees[column.name].loss(level)[label]
                for column, level, label in zip(table_.quasi_identifiers, node, told, strict=True)
            ]
            found[node] = round(float(np.where(kept, np.mean(losses, axis=0), 1.0).mean()), 12)
    return found


def passing_levels(
    cells: Cells, owners: NDArray[np.int64], wanted: JointAnonymisation
) -> dict[tuple[int, int], tuple[bool, float]]:
    """By place and level of a quasi-identifier, whether each label could be a class by its size, and the mean loss."""
    table_, found, trees = whole(cells), dict[tuple[int, int], tuple[bool, float]](), hierarchies()
    for place, column in enumerate(table_.quasi_identifiers):
        tree = trees[column.name]
        leaves = tree.align(column)[column.codes]
        for level in range(tree.height + 1):
            parts = np.zeros((len(tree.labels[level]), len(PARTIES)), np.int64)
            np.add.at(parts, (tree.maps[level][leaves], owners), 1)
            sizes = parts.sum(axis=1)
            fits = ((sizes == 0) | (sizes >= wanted.k)) & others_fit(parts, wanted)
            if wanted.k_site is not None:
                fits &= ((parts == 0) | (parts >= wanted.k_site)).all(axis=1)
            mean = float(tree.loss(level)[tree.maps[level][leaves]].mean())
            found[place, level] = bool(fits.all()) or level in (0, tree.height), mean
    return found


def public_bounds(cells: Cells, owners: NDArray[np.int64], wanted: JointAnonymisation) -> dict[tuple[int, ...], float]:
    """By node what everybody knows that it loses at least."""
    known = passing_levels(cells, owners, wanted)
    heights = [each.height for each in wanted.hierarchies]
    least = {
        (place, level): max(known[place, below][1] for below in range(level + 1) if known[place, below][0])
        for place, level in known
    }
    nodes = itertools.product(*(range(height + 1) for height in heights))
    return {node: round(float(np.mean([least[each] for each in enumerate(node)])), 12) for node in nodes}


@st.composite
def divided(draw: st.DrawFn, least: int = 4, most: int = 60) -> tuple[Cells, NDArray[np.int64], tuple[str, ...]]:
    """Rows and their owners, of whom some may have none."""
    n_rows = draw(st.integers(least, most))
    parties = PARTIES[: draw(st.integers(2, 5))]
    seed = draw(st.integers(0, 1 << 16))
    ragged = np.random.default_rng(seed).dirichlet(np.full(len(parties), draw(st.sampled_from((0.2, 1.0, 20.0)))))
    owners = np.random.default_rng(seed + 1).choice(len(parties), n_rows, p=ragged)
    return people(n_rows, seed), owners.astype(np.int64), parties


def adult(folder: Path, **changes: Any) -> tuple[Cells, NDArray[np.int64], JointAnonymisation]:
    """The Adult table, its rows' owners and a task for three parties with k = 5.

    Args:
        folder: Of reference data.
        changes: Of the task.
    """
    text = {name: pa.string() for name in (*QUASI, "occupation")}
    table = pa.csv.read_csv(
        folder / "adult" / "adult.csv",
        parse_options=pa.csv.ParseOptions(delimiter=";"),
        convert_options=pa.csv.ConvertOptions(column_types=text),
    )
    quasi = tuple(
        QuasiIdentifier(
            name,
            "numeric" if name == "age" else "tree",
            from_csv(folder / "adult" / f"adult_hierarchy_{name}.csv", ";"),
        )
        for name in QUASI
    )
    carried = (Carried("occupation", "sensitive", "tree", None, 24),)
    wanted = task(PARTIES[:3], k=5, quasi_identifiers=quasi, carried=carried, bound=11_000, **changes)
    cells = {name: table.column(name).to_pylist() for name in (*QUASI, "occupation")}
    return cells, np.random.default_rng(1).integers(0, 3, table.num_rows), wanted
