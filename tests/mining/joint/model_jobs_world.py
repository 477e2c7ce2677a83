"""Jobs that learn models, and tables of several parties for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from jobs.kinds.models.model import Model
from jobs.kinds.models.parameters import ModelParameters, model_parameters
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.models.attributes import LabelledRows, coded_columns
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import stacked
from mining.models.naive_bayes import NaiveBayesParameters
from mining.reference.pooled_models import learn_bayes, learn_tree, lloyd

Task = Literal["naive-bayes", "decision-tree", "k-means"]
TASKS: tuple[Task, ...] = ("naive-bayes", "decision-tree", "k-means")
PARTIES = ("north", "south", "east")
Rows = dict[str, list[str]]  # by column the cells

COLUMNS: dict[str, Any] = {
    "class": {"values": ["well", "ill", ""]},
    "smoker": {"values": ["no", "yes"]},
    "town": {"values": ["A", "B", "C", "nowhere"]},
    "age": {"cuts": ["30", "52.5", "70"]},
    "weight": {"low": "40", "high": "120", "steps": 160},
    "height": {"low": "100", "high": "220", "steps": 60},
}
MODELS: dict[Task, tuple[str, dict[str, Any], list[str]]] = {
    "naive-bayes": ("naive_bayes", {"target": "class"}, ["smoker", "weight", "age", "town"]),
    "decision-tree": ("decision_tree", {"target": "class", "min_rows": 3}, ["smoker", "age", "town"]),
    "k-means": ("k_means", {"k": 3, "max_iterations": 4}, ["weight", "height"]),
}


def job(
    task: Task,
    parties: Sequence[str] = PARTIES,
    *,
    partition: str = "horizontal",
    recipients: Sequence[str] = ("all",),
    align: Mapping[str, Any] | None = None,
    **model: Any,
) -> JobSpec:
    """A job over the columns above; `model` changes its own table."""
    section, settings, attributes = MODELS[task]
    contents = {
        "job": {
            "name": "test",
            "task": task,
            "parties": list(parties),
            "dataset": "people",
            "partition": partition,
            "recipients": list(recipients),
        },
        section: {"attributes": attributes, **settings, **model},
    }
    named = [*contents[section]["attributes"], *([settings["target"]] if "target" in settings else [])]
    contents["columns"] = {name: COLUMNS[name] for name in named}
    if align is not None:
        contents["align"] = dict(align)
    return job_of(contents, "the test", Path())


def people(n_rows: int, seed: int) -> Rows:
    """Rows whose class hangs on the other columns, and sometimes on chance."""
    chance = np.random.default_rng(seed)
    smoker, age = chance.integers(0, 2, n_rows), chance.integers(15, 91, n_rows)
    ill = np.where((smoker == 1) & (age > 50), 1, chance.integers(0, 3, n_rows) * (chance.random(n_rows) < 0.2))
    return {
        "class": [["well", "ill", ""][each] for each in ill.tolist()],
        "smoker": [["no", "yes"][each] for each in smoker.tolist()],
        "town": [["A", "B", "C"][each] for each in chance.integers(0, 3, n_rows).tolist()],
        "age": [str(each) for each in age.tolist()],
        "weight": [str(each / 2) for each in chance.integers(80, 241, n_rows).tolist()],
        "height": [str(each) for each in chance.integers(100, 221, n_rows).tolist()],
    }


def table(rows: Rows, ids: Sequence[str] | None = None) -> Table:
    """Cells as a party's table, with a column of ids where rows are to be found by them."""
    columns = rows if ids is None else {"id": list(ids), **rows}
    return table_from_arrow(
        pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}),
        () if ids is None else ("id",),
        "the test",
    )


def parted(rows: Rows, bounds: Sequence[int], parties: Sequence[str]) -> dict[str, Table]:
    """By party consecutive rows, up to the bounds; perhaps none."""
    whole = len(rows["class"])
    edges = [0, *bounds, whole]
    return {
        party: table({name: cells[a:b] for name, cells in rows.items()})
        for party, a, b in zip(parties, edges, edges[1:], strict=False)
    }


def columns(rows: Rows, holders: Mapping[str, str], absent: Mapping[str, set[int]]) -> dict[str, Table]:
    """By party the columns that it holds, of the rows that are not absent there, in an order of its own."""
    found = {}
    for place, (party, missing) in enumerate(absent.items()):
        kept = [row for row in range(len(rows["class"])) if row not in missing]
        kept = kept[place:] + kept[:place]
        own = {name: [rows[name][row] for row in kept] for name, holder in holders.items() if holder == party}
        found[party] = table(own, [f"p{row}" for row in kept])
    return found


def taken(rows: Rows, kept: Sequence[int]) -> Rows:
    return {name: [cells[row] for row in kept] for name, cells in rows.items()}


def pooled(spec: JobSpec, rows: Rows) -> Model:
    """The model of all rows in one place."""
    task: ModelParameters = model_parameters(spec)
    whole = table(rows)
    match task:
        case NaiveBayesParameters():
            labelled = LabelledRows.of(whole, task.target, task.attributes)
            return Model(task, whole.n_rows, learn_bayes(labelled, task))
        case TreeParameters():
            labelled = LabelledRows.of(whole, task.target, task.attributes)
            return Model(task, whole.n_rows, learn_tree(labelled, task))
        case _:
            return Model(task, whole.n_rows, lloyd(stacked(coded_columns(whole, task.attributes)), task)[0])


@st.composite
def splits(draw: st.DrawFn) -> tuple[Rows, list[int], tuple[str, ...]]:
    """Rows of two or three parties, of whom some may have none."""
    n_rows = draw(st.integers(3, 60))
    parties = PARTIES[: draw(st.integers(2, 3))]
    bounds = draw(st.lists(st.integers(0, n_rows), min_size=len(parties) - 1, max_size=len(parties) - 1))
    return people(n_rows, draw(st.integers(0, 1 << 16))), sorted(bounds), parties
