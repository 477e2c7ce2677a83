"""Jobs that learn models: what they find is the model of the pooled rows, and they open what their statement says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.naive_bayes import CategoricalNB

import comine
from jobs.kinds.models.document import pack_model
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.errors import ComineError, ConfigurationError, InputDataError
from link.steps import LABEL as AGAIN
from mining.joint import align
from mining.models.attributes import coded_columns
from mining.models.kmeans import Clusters, stacked
from mining.models.naive_bayes import NaiveBayes
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.errors import fails
from tests.examples import examples, slowly
from tests.mining.joint.model_jobs_world import (
    COLUMNS,
    PARTIES,
    TASKS,
    Rows,
    Task,
    columns,
    job,
    parted,
    people,
    pooled,
    splits,
    table,
    taken,
)
from tests.mining.joint.models import real_tables

pytestmark = [
    pytest.mark.filterwarnings("ignore::comine.api.DataWarning"),  # some parties have no rows, and are to
    pytest.mark.turn(3),
]
HOLDERS = {"class": "north", "smoker": "south", "weight": "south", "town": "north", "age": "east", "height": "north"}


def same(result: Result, rows: Rows) -> None:
    expected = pooled(result.spec, rows)
    assert result.n_rows == expected.n_rows
    assert pack_model(result.model()) == pack_model(expected)
    assert (result.model().predict(table(rows)) == expected.predict(table(rows))).all()


# -- equal to the pooled ones -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("task", TASKS)
@given(splits())
@examples(1, 8)
def test_rows_at_several_parties(task: Task, split: tuple[Rows, list[int], tuple[str, ...]]) -> None:
    rows, bounds, parties = split
    same(comine.simulate(job(task, parties), parted(rows, bounds, parties)), rows)


@pytest.mark.parametrize(
    ("task", "mode"),
    slowly([(each, mode) for mode in ("intersection", "union") for each in TASKS], now=[0, 1, 2, 4, 5]),
)
@given(st.data())
@settings(max_examples=3)
def test_columns_at_several_parties(task: Task, mode: str, data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(5, 30))
    parties = PARTIES[: data.draw(st.integers(2, 3))]
    rows = people(n_rows, data.draw(st.integers(0, 1 << 16)))
    spec = job(task, parties, partition="vertical", align={"mode": mode}, **({"k": 2} if task == "k-means" else {}))
    holders = {name: data.draw(st.sampled_from(parties), label=name) for name in spec.columns}
    absent = {party: data.draw(st.sets(st.integers(3, n_rows - 1), max_size=4), label=party) for party in parties}
    common = [row for row in range(n_rows) if not any(row in missing for missing in absent.values())]
    same(comine.simulate(spec, columns(rows, holders, absent)), taken(rows, common))


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_naive_bayes_is_that_of_scikit_learn(partition: str) -> None:
    rows, names = people(90, 5), ["smoker", "town", "age"]
    spec = job("naive-bayes", partition=partition, attributes=names, smoothing="0.5")
    result = comine.simulate(spec, _given(spec, rows))
    model = result.model()
    assert isinstance(model.learnt, NaiveBayes)
    cells = np.stack(coded_columns(table(rows), model.task.attributes), axis=1)
    classes = [model.classes.index(each) for each in rows["class"]]
    theirs = CategoricalNB(alpha=0.5, min_categories=[each.size for each in model.learnt.task.categorical])
    theirs.fit(cells, classes)
    seen = theirs.classes_.tolist()
    np.testing.assert_allclose(model.learnt.class_log_prior[seen], theirs.class_log_prior_)
    for ours, of_sklearn in zip(model.learnt.value_log_probabilities, theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(ours[seen], of_sklearn)


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_clusters_are_those_of_scikit_learn(partition: str) -> None:
    rows = people(80, 7)
    start = [["50", "120"], ["80", "160"], ["110", "200"]]
    spec = job("k-means", partition=partition, start=start, max_iterations=100, fraction_bits=12)
    model = comine.simulate(spec, _given(spec, rows)).model()
    assert isinstance(model.learnt, Clusters)
    points = stacked(coded_columns(table(rows), model.task.attributes))
    initial = np.array([[(float(w) - 40) * 2, (float(h) - 100) / 2] for w, h in start])
    theirs = KMeans(3, init=initial, n_init=1, max_iter=300, tol=0).fit(points)
    np.testing.assert_allclose(model.learnt.centroids / 2**12, theirs.cluster_centers_, atol=2**-11)
    assert model.predict(table(rows)).tolist() == theirs.labels_.tolist()


def _given(spec: JobSpec, rows: Rows) -> dict[str, Any]:
    if not spec.is_vertical:
        return parted(rows, [10, 55], PARTIES)
    holders = {name: holder for name, holder in HOLDERS.items() if name in spec.columns}
    return columns(rows, holders, {party: set() for party in PARTIES})


def test_a_tree_of_the_adult_table(shared_data: Path) -> None:
    whole = real_tables.table(shared_data / "adult" / "adult_45222.csv.gz")
    names = ("relationship", "sex", "race")
    domains = {name: {"values": real_tables.domain(whole, name).values} for name in ("income", *names)}
    spec = job_of(
        {
            "job": {"name": "adult", "task": "decision-tree", "parties": ["a", "b"], "dataset": "adult"},
            "decision_tree": {"target": "income", "attributes": [*names, "age"], "min_rows": 200, "max_depth": 3},
            "columns": {**domains, "age": {"cuts": [25, 35, 45, 60]}},
        },
        "the test",
        Path(),
    )
    result = comine.simulate(spec, {"a": whole, "b": whole})
    found = result.model()
    assert found.n_rows == 2 * whole.n_rows
    told = found.predict(whole)
    (income,) = (column for column in whole.columns if column.name == "income")
    truth = np.array(income.values.to_pylist())[income.codes]
    assert (told == truth).mean() > max((truth == each).mean() for each in found.classes)


# -- who learns what --------------------------------------------------------------------------------------------------
VARIANTS: dict[str, dict[str, Any]] = {
    "rows": {},
    "rows, one learner": {"recipients": ("south",)},
    "columns": {"partition": "vertical"},
    "columns, one learner": {"partition": "vertical", "recipients": ("coordinator", "east")},
    "columns, union": {"partition": "vertical", "align": {"mode": "union", "bound": 40}},
}


def played(spec: JobSpec, data: dict[str, Any]) -> tuple[dict[str, PartyRun], list[Frame]]:
    frames: list[Frame] = []
    ends = run_still(run_job(spec, data, InlineExecutor(), observe=frames.append))
    assert all(isinstance(end, PartyRun) for end in ends.values()), ends
    return {party: end for party, end in ends.items() if isinstance(end, PartyRun)}, frames


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("task", TASKS)
def test_all_that_is_opened_is_stated_and_only_learners_get_the_model(task: Task, variant: str) -> None:
    spec = job(task, **VARIANTS[variant])
    declared = {line.label: line for line in statement(spec).declared}
    runs, frames = played(spec, _given(spec, people(25, 3)))
    sent: dict[tuple[str, str, str], int] = defaultdict(int)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.last:
            message = Opening.FromString(frame.body)
            assert frame.receiver in declared[message.label].recipients
            sent[frame.sender, frame.receiver, message.label] += message.number
    assert {label for _, _, label in sent} == set(declared) - {AGAIN}
    assert (AGAIN in declared) == kind_of(spec).resumes(spec)
    assert all(number <= declared[label].maximum for (_, _, label), number in sent.items())
    assert {party for party, run in runs.items() if run.outcome.finding is not None} == set(spec.learners)
    packed = {pack_model(run.outcome.finding.model) for run in runs.values() if run.outcome.finding is not None}
    assert len(packed) == 1


def test_the_statement_of_a_model_names_what_makes_it() -> None:
    told = " ".join(statement(job("decision-tree")).exact_prose())
    assert "at every node of 6 rows or more of several classes" in told
    assert "withstand any one party" in told
    assert "the number of iterations" in " ".join(statement(job("k-means")).exact_prose())
    of_two = job("k-means", PARTIES[:2], partition="vertical")
    assert "none is needed" in statement(of_two).collusion
    assert "with two parties a sum reveals" in statement(job("naive-bayes", PARTIES[:2])).collusion
    assert "the cluster of every common row" in " ".join(statement(of_two).exact_prose())


def test_a_result_for_a_party_alone_is_not_at_the_coordinator() -> None:
    spec = job("naive-bayes", recipients=("south",))
    result = replace(comine.simulate(spec, _given(spec, people(20, 1))), finding=None)  # which nodes would not send
    assert repr(result) == "Result('test', naive-bayes, 3 parties, 20 rows, result elsewhere)"
    with fails("E100"):
        result.model()
    with fails("E100"):
        result.itemsets()


# -- what cannot be learnt --------------------------------------------------------------------------------------------
def test_data_that_do_not_fit() -> None:
    rows = people(12, 0)
    without = {name: cells for name, cells in rows.items() if name != "town"}
    spec = job("decision-tree", PARTIES[:2])
    cases: list[tuple[dict[str, Any], type[ComineError], str]] = [
        ({"north": table(rows), "south": table(without)}, InputDataError, "the data of south have no column 'town'"),
        (
            {"north": table(rows), "south": [["a"]]},
            ConfigurationError,
            'task = "decision-tree" .* needs kind = "table"',
        ),
        ({"north": table({**rows, "smoker": ["maybe"] * 12}), "south": table(rows)}, InputDataError, "12 rows of the"),
        ({"north": table({**rows, "age": ["old"] * 12}), "south": table(rows)}, InputDataError, "is no number"),
        ({party: table({name: [] for name in rows}) for party in spec.job.parties}, InputDataError, "no row to learn"),
    ]
    for data, error, words in cases:
        with pytest.raises(error, match=words):
            comine.simulate(spec, data)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_what_a_job_says_of_columns_chooses_no_rows(
    task: Task, partition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that went on with the rows that have its values would tell how many, and over columns who they are."""
    met: list[int] = []
    aligned = align.align

    async def noted(*given: Any) -> Any:
        found = await aligned(*given)
        met.append(-1 if found.rows is None else len(found.rows))
        return found

    monkeypatch.setattr(align, "align", noted)
    rows, name = people(30, 3), "age" if task == "decision-tree" else "weight"
    rows = {**rows, name: ["old", *rows[name][1:-1], ""]}
    spec = job(task, PARTIES[:2], partition=partition)
    if partition == "horizontal":
        data = parted(rows, [14], PARTIES[:2])
    else:
        holders = {name: PARTIES[place % 2] for place, name in enumerate(spec.columns)}
        data = columns(rows, holders, {party: set() for party in PARTIES[:2]})
    with fails("E101"):
        comine.simulate(spec, data)
    assert set(met) <= {30}


@pytest.mark.parametrize(
    ("task", "mode"),
    [*((each, "intersection") for each in TASKS), ("naive-bayes", "union"), ("decision-tree", "union")],
)
@pytest.mark.parametrize("common", [True, False])
def test_whose_rows_are_common_makes_no_difference_to_whether_cells_fit(
    task: Task, mode: str, common: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever brings the id of one person would learn whether that person has a value that the job names."""
    met: list[object] = []
    aligned = align.align

    async def noted(*given: Any) -> Any:
        found = await aligned(*given)
        met.append(found)
        return found

    monkeypatch.setattr(align, "align", noted)
    rows, name = people(30, 3), "age" if task == "decision-tree" else "weight"
    rows = {**rows, name: ["old", *rows[name][1:]]}  # of the first person
    spec = job(task, PARTIES[:2], partition="vertical", align={"mode": mode})
    holders = {column: "north" if column == name else "south" for column in spec.columns}
    without = {"north": set[int](), "south": set(range(1, 30)) if common else set(range(29))}
    with fails("E101"):
        comine.simulate(spec, columns(rows, holders, without))
    assert not met


def test_columns_that_do_not_fit() -> None:
    rows, parties = people(6, 0), PARTIES[:2]
    spec = job("decision-tree", parties, partition="vertical")
    held = dict.fromkeys(COLUMNS, "north")
    nobody = {party: set[int]() for party in parties}
    missing = {name: who for name, who in held.items() if name != "town"}
    with fails("E100"):
        comine.simulate(spec, columns(rows, missing, nobody))
    both = columns(rows, held, nobody)
    with fails("E100"):
        comine.simulate(spec, {"north": both["north"], "south": both["north"]})
    apart = columns(rows, {**held, "age": "south"}, {"north": {0, 1, 2}, "south": {3, 4, 5}})
    with fails("E101"):
        comine.simulate(spec, apart)
    unnamed = {"north": table(rows), "south": table({})}
    with fails("E101"):
        comine.simulate(spec, unnamed)


def test_more_clusters_than_rows() -> None:
    spec = job("k-means", PARTIES[:2], k=9)
    with fails("E100"):
        comine.simulate(spec, parted(people(8, 0), [4], PARTIES[:2]))
    assert comine.simulate(spec, parted(people(9, 0), [4], PARTIES[:2])).n_rows == 9
