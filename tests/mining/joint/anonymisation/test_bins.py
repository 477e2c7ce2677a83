"""Continuous columns of several parties in public bins: exactly as pooled bins, and nearly as pooled numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer  # type: ignore[import-untyped]

import comine
from anonymize.cells import Interval, parse
from anonymize.fulldomain.optimal import optimal
from anonymize.hierarchies.builders import bins
from anonymize.models import KAnonymity, Requirements
from anonymize.multidimensional.mondrian import mondrian
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.verifier import verify
from jobs.kinds.release.release import Anonymized
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, table

Columns = Mapping[str, Sequence[float]]

pytestmark = pytest.mark.filterwarnings("ignore::comine.api.DataWarning")  # some parties have no rows, and are to
ENDS = {"weight": [0, 0.5, 1, 2.5, 4, 10], "height": [-1, 0, 0.125, 0.25, 3]}
ENTRIES = {name: {"builder": "bins", "ends": list(map(str, ends)), "groups": [2]} for name, ends in ENDS.items()}


def job(entries: Mapping[str, Any], parties: Sequence[str], k: int, **changes: Any) -> JobSpec:
    contents: dict[str, Any] = {
        "job": {
            "name": "bins",
            "task": "anonymize",
            "parties": list(parties),
            "dataset": "people",
            "recipients": ["all"],
        },
        "anonymize": {
            "quasi_identifiers": list(entries),
            "sensitive": ["ill"],
            "insider_k": 1,
            "model": {"k": k},
            "columns": {name: {"kind": "numeric"} for name in entries},
            "hierarchies": dict(entries),
            **changes,
        },
    }
    return job_of(contents, "the test", Path())


def joint(spec: JobSpec, columns: Columns, ill: Sequence[str], owners: Sequence[int]) -> comine.Result:
    cells = {**{name: list(map(repr, numbers)) for name, numbers in columns.items()}, "ill": list(ill)}
    return comine.simulate(
        spec,
        {
            party: table(
                {
                    name: [cell for cell, owner in zip(column, owners, strict=True) if owner == place]
                    for name, column in cells.items()
                }
            )
            for place, party in enumerate(spec.job.parties)
        },
    )


def pooled(columns: Columns, ill: Sequence[str]) -> Table:
    return Table.of({**columns, "ill": list(ill)}, Roles(quasi_identifiers=tuple(columns), sensitive=("ill",)))


def rows_of(release: pa.Table) -> list[tuple[str, ...]]:
    return sorted(zip(*(column.to_pylist() for column in release.columns), strict=True))


@st.composite
def people(draw: st.DrawFn) -> tuple[Columns, list[str], list[int]]:
    size = draw(st.integers(4, 30))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = {
        name: np.round(np.minimum(chance.exponential(ends[-1] / 4, size) + ends[0], ends[-1]), 3).tolist()
        for name, ends in ENDS.items()
    }
    return numbers, chance.choice(["flu", "cold"], size).tolist(), chance.integers(0, 3, size).tolist()


@given(people(), st.integers(2, 4))
@examples(1, 4)
def test_regions_are_those_of_the_middles_of_the_pooled_bins(data: Any, k: int) -> None:
    columns, ill, owners = data
    found = joint(job(ENTRIES, PARTIES[:3], k, algorithm="mondrian"), columns, ill, owners).release()
    told = {name: bins(ENDS[name]).bins for name in columns}
    middles, places = {}, {}
    for name, numbers in columns.items():
        each = told[name]
        assert each is not None
        places[name] = each.find(numbers)
        middles[name] = each.middles[places[name]].tolist()
    expected = mondrian(pooled(middles, ill), Requirements((KAnonymity(k),)))
    assert expected.classes is not None
    shown = []
    for row in range(len(ill)):
        together = np.flatnonzero(expected.classes == expected.classes[row])
        cells = []
        for name, each in told.items():
            assert each is not None
            inside = places[name][together]
            cells.append(each.text(int(inside.min()), int(inside.max())))
        shown.append((*cells, ill[row]))
    assert rows_of(found.table) == sorted(shown)


@given(people(), st.sampled_from(["0", "0.2"]))
@examples(1, 4)
def test_levels_are_those_of_the_pooled_bins(data: Any, max_suppression: str) -> None:
    columns, ill, owners = data
    spec = job(ENTRIES, PARTIES[:3], 2, max_suppression=max_suppression)
    trees = {name: bins(ends, (2,), name=name) for name, ends in ENDS.items()}
    expected = optimal(pooled(columns, ill), trees, Requirements((KAnonymity(2),)), max_suppression=max_suppression)
    found = joint(spec, columns, ill, owners).release()
    assert found.node == expected.node
    assert rows_of(found.table) == rows_of(expected.table)


@pytest.mark.slow
def test_measurements_lose_at_most_five_per_cent_more_than_pooled(tmp_path: Path) -> None:
    """The 569 tumours that come with scikit-learn, in 512 bins; by order of widths, k = 5."""
    data = load_breast_cancer()
    ends = {
        "mean radius": (5, 30),
        "mean texture": (5, 45),
        "mean smoothness": ("0.04", "0.18"),
        "mean symmetry": ("0.1", "0.35"),
    }
    columns = {name: data.data[:, list(data.feature_names).index(name)].tolist() for name in ends}
    ill = [str(data.target_names[each]) for each in data.target]
    alone = mondrian(pooled(columns, ill), Requirements((KAnonymity(5),)))
    assert alone.cell_loss is not None
    entries = {name: {"builder": "bins", "range": list(each), "count": 512} for name, each in ends.items()}
    owners = np.random.default_rng(1).integers(0, 3, len(ill)).tolist()
    result = joint(job(entries, PARTIES[:3], 5, algorithm="mondrian"), columns, ill, owners)
    result.save(tmp_path / "out")
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    assert not verified.unchecked
    assert _loss(result.release(), columns) <= 1.05 * float(alone.cell_loss.mean())


def _loss(release: Anonymized, columns: Columns) -> float:
    """Mean width of the published intervals, as a share of what the numbers span."""
    shares = []
    for name, numbers in columns.items():
        cells = [parse(cell) for cell in release.table.column(name).to_pylist()]
        widths = [float(cell.high) - float(cell.low) for cell in cells if isinstance(cell, Interval)]
        assert len(widths) == len(numbers)
        shares.append(np.mean(widths) / np.ptp(numbers))
    return float(np.mean(shares))


def test_a_number_outside_the_bins_ends_the_job_and_is_not_named() -> None:
    columns = {"weight": [1.0, 2.0, 10.5], "height": [0.0, 0.1, 0.2]}
    with fails("E101") as caught:
        joint(job(ENTRIES, PARTIES[:3], 2), columns, ["flu"] * 3, [0, 1, 2])
    assert "10.5" not in caught.value.message
