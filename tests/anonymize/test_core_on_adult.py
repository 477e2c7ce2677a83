"""Classes, hierarchies and models on UCI Adult, against pandas."""

from __future__ import annotations

import pathlib

import numpy as np
import pandas as pd
import pytest

from anonymize.grouping import Histograms, group
from anonymize.hierarchies.files import from_csv
from anonymize.models import AlphaK, DistinctDiversity, KAnonymity, RecursiveDiversity, TCloseness
from anonymize.reading import read_csv
from anonymize.roles import Roles
from anonymize.tables import Table

QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
NODES = [(0,) * 8, (0, 3, 0, 2, 2, 1, 1, 0), (1, 4, 1, 2, 3, 2, 2, 1)]


@pytest.fixture(scope="module")
def folder(shared_data: pathlib.Path) -> pathlib.Path:
    return shared_data / "adult"


@pytest.fixture(scope="module")
def adult(folder: pathlib.Path) -> Table:
    roles = Roles(quasi_identifiers=QUASI, sensitive=("occupation",))
    return Table.of(read_csv(folder / "adult.csv", ";"), roles, {"age": "numeric"})


@pytest.mark.parametrize("node", NODES)
def test_models_agree_with_pandas(adult: Table, folder: pathlib.Path, node: tuple[int, ...]) -> None:
    keys, frame = [], adult.data.to_pandas()
    for name, level in zip(QUASI, node, strict=True):
        hierarchy = from_csv(folder / f"adult_hierarchy_{name}.csv", ";", name=name)
        column = adult.columns[name]
        keys.append((hierarchy.codes(column, level)[column.codes], len(hierarchy.labels[level])))
        rows = pd.read_csv(folder / f"adult_hierarchy_{name}.csv", sep=";", header=None, dtype=str).set_index(0)
        if level:
            frame[name] = frame[name].map(rows[level])
    labels, classes = group(keys)
    found = Histograms.of(labels, classes, adult.sensitive)
    grouped = frame.groupby(list(QUASI))["occupation"]
    sizes = grouped.size()
    assert classes == len(sizes)
    assert sorted(found.sizes) == sorted(sizes)

    def records(model: KAnonymity | DistinctDiversity | AlphaK | RecursiveDiversity | TCloseness) -> int:
        return int(found.sizes[model.fitted(adult).satisfied(found)].sum())

    shares = grouped.value_counts(normalize=True).unstack(fill_value=0)
    whole = frame["occupation"].value_counts(normalize=True)[shares.columns]
    distances = (shares - whole).abs().sum(axis=1) / 2
    ordered = -np.sort(-shares.to_numpy(), axis=1)
    assert records(KAnonymity(5)) == sizes[sizes >= 5].sum()
    assert records(DistinctDiversity(3, "occupation")) == sizes[grouped.nunique() >= 3].sum()
    assert records(AlphaK("0.30001", "occupation")) == sizes[ordered[:, 0] <= 0.30001].sum()
    recursive = ordered[:, 0] < 1.50001 * ordered[:, 2:].sum(axis=1)
    assert records(RecursiveDiversity("1.50001", 3, "occupation")) == sizes[recursive].sum()
    assert records(TCloseness("0.40001", "occupation")) == sizes[distances <= 0.40001].sum()


def test_known_sizes(adult: Table) -> None:
    assert adult.n_rows == 30_162
    assert group(adult.quasi_codes)[1] == 12_458
    assert adult.columns["occupation"].size == 14
