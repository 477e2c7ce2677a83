"""Joint naive Bayes equals scikit-learn's over the pooled rows, and opens what it declares."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from crypto.protocols.comparison.two_party import pairs_of
from mining.joint.models import naive_bayes as joint
from mining.joint.models.naive_bayes import learn_horizontal, learn_vertical, learned, openings
from mining.joint.models.totals import Learnt
from mining.models.attributes import Categorical, LabelledRows, Numeric
from mining.models.naive_bayes import NaiveBayes, NaiveBayesParameters
from mining.reference.pooled_models import learn_bayes
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.mining.joint.models.models_world import (
    PARTIES,
    aligned,
    assert_declared,
    bounds,
    opened,
    parted,
    run,
    shapes,
    taken,
)
from tests.mining.joint.models.real_tables import adult

TARGET = Categorical("class", ("yes", "no", "perhaps"))


@st.composite
def tasks(draw: st.DrawFn) -> NaiveBayesParameters:
    attributes: list[Categorical | Numeric] = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            values = tuple(f"v{place}" for place in range(draw(st.integers(1, 4))))
            attributes.append(Categorical(f"c{number}", values))
        else:
            low = Decimal(draw(st.integers(-50, 50)))
            attributes.append(Numeric(f"n{number}", low, low + draw(st.integers(1, 9)), draw(st.integers(1, 1000))))
    return NaiveBayesParameters(TARGET, tuple(attributes), Decimal(draw(st.sampled_from(["0.5", "1", "3"]))))


@st.composite
def rows_of(draw: st.DrawFn, task: NaiveBayesParameters) -> LabelledRows:
    n = draw(st.integers(1, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    classes = generator.integers(0, draw(st.integers(1, 3)), n)
    cells = []
    for attribute in task.attributes:
        top = attribute.size if isinstance(attribute, Categorical) else attribute.steps + 1
        cells.append(np.full(n, top - 1) if draw(st.integers(0, 5)) == 0 else generator.integers(0, top, n))
    return LabelledRows(classes, tuple(cells))


def assert_equals_sklearn(model: NaiveBayes, rows: LabelledRows) -> None:
    """All probabilities, class by class that occurs; log-likelihoods of attributes add up beside those of classes."""
    task, present = model.task, np.unique(rows.classes)
    expected = np.tile(np.log(np.bincount(rows.classes)[present] / rows.n_rows), (rows.n_rows, 1))
    categorical = [place for place, each in enumerate(task.attributes) if isinstance(each, Categorical)]
    numeric = [place for place, each in enumerate(task.attributes) if isinstance(each, Numeric)]
    if categorical:
        x = np.stack([rows.cells[place] for place in categorical], axis=1)
        sizes = [each.size for each in task.categorical]
        peer = CategoricalNB(alpha=float(task.smoothing), min_categories=sizes).fit(x, rows.classes)
        expected += peer.predict_joint_log_proba(x) - peer.class_log_prior_
        for table, theirs in zip(model.value_log_probabilities, peer.feature_log_prob_, strict=True):
            np.testing.assert_allclose(table[present], theirs, rtol=1e-12, atol=1e-12)
    if numeric:
        x = np.stack([task.attributes[place].numbers(rows.cells[place]) for place in numeric], axis=1)
        if (x == x[0]).all():
            return  # scikit-learn divides by zero, or by what rounding leaves
        peer = GaussianNB(var_smoothing=float(task.variance_smoothing)).fit(x, rows.classes)
        np.testing.assert_allclose(model.means.T[present], peer.theta_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.variances.T[present], peer.var_, rtol=1e-6, atol=1e-12)
        with np.errstate(all="ignore"):
            expected += peer.predict_joint_log_proba(x) - np.log(peer.class_prior_)
    joint_log = model.log_joint(rows.cells)
    np.testing.assert_allclose(joint_log[:, present], expected, rtol=1e-5, atol=1e-5)
    assert np.isneginf(np.delete(joint_log, present, axis=1)).all()
    chosen = expected[np.arange(rows.n_rows), np.searchsorted(present, model.predict(rows.cells))]
    assert (chosen >= expected.max(axis=1) - 1e-4).all()


def assert_same(model: NaiveBayes, other: NaiveBayes) -> None:
    assert model.class_counts.tolist() == other.class_counts.tolist()
    assert [table.tolist() for table in model.value_counts] == [table.tolist() for table in other.value_counts]
    assert model.means.tolist() == other.means.tolist()
    assert model.variances.tolist() == other.variances.tolist()


def check(out: dict[str, Learnt[NaiveBayes]], learners: tuple[str, ...], rows: LabelledRows, task) -> None:
    expected = learn_bayes(rows, task)
    for party, found in out.items():
        assert found.n_rows == rows.n_rows
        assert (found.model is not None) == (party in learners)
        if found.model is not None:
            assert_same(found.model, expected)


@given(st.data())
@settings(max_examples=30)
def test_rows_at_several_parties(data: st.DataObject) -> None:
    task = data.draw(tasks())
    rows = data.draw(rows_of(task))
    cuts, parties = data.draw(bounds(rows.n_rows))
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    frames: list[Frame] = []
    declared = openings(task, parties, learners, vertical=False, everywhere=True)
    out = run(
        parted(rows, cuts, parties), lambda s, own: learn_horizontal(s, own, task, learners), declared, frames=frames
    )
    check(out, learners, rows, task)
    assert_equals_sklearn(learn_bayes(rows, task), rows)
    assert_declared(frames, declared)


@given(st.data(), st.booleans())
@settings(max_examples=15)
def test_columns_at_several_parties(data: st.DataObject, everywhere: bool) -> None:
    task = data.draw(tasks())
    rows = data.draw(rows_of(task))
    parties = PARTIES[: data.draw(st.integers(2, 4))]
    attributes = (task.target, *task.attributes)
    holders = [data.draw(st.sampled_from(parties)) for _ in attributes]
    presence = None
    if not everywhere:
        bits = st.lists(st.sampled_from([True, True, False]), min_size=rows.n_rows, max_size=rows.n_rows)
        presence = {party: np.array(data.draw(bits)) for party in parties}
    common = np.ones(rows.n_rows, bool) if presence is None else np.logical_and.reduce(list(presence.values()))
    learners = (parties[-1],)
    frames: list[Frame] = []
    declared = openings(task, parties, learners, vertical=True, everywhere=everywhere)
    columns = aligned(rows, attributes, holders, parties, presence)

    def go() -> dict[str, Learnt[NaiveBayes]]:
        return run(columns, lambda s, own: learn_vertical(s, pairs_of(s), own, task, learners), declared, frames=frames)

    if not common.any():
        with fails("E101"):
            go()
        return
    check(go(), learners, taken(rows, common), task)
    assert_declared(frames, declared)


def small_task() -> NaiveBayesParameters:
    numeric = Numeric("n", Decimal(0), Decimal(10), 100)
    return NaiveBayesParameters(TARGET, (Categorical("c", ("a", "b")), numeric))


def small_rows(seed: int, n: int) -> LabelledRows:
    generator = np.random.default_rng(seed)
    return LabelledRows(
        generator.integers(0, 3, n), (generator.integers(0, 2, n), generator.integers(0, 101, n, dtype=np.int64))
    )


def test_over_real_streams_and_with_a_party_without_rows() -> None:
    task, rows = small_task(), small_rows(1, 50)
    parties = PARTIES[:3]
    declared = openings(task, parties, parties, vertical=False, everywhere=True)
    data = parted(rows, [50, 50], parties)
    out = run(data, lambda s, own: learn_horizontal(s, own, task, parties), declared, transport="grpc")
    check(out, parties, rows, task)


def test_no_rows_anywhere() -> None:
    task, parties = small_task(), PARTIES[:2]
    declared = openings(task, parties, parties, vertical=False, everywhere=True)
    with fails("E101"):
        run(parted(small_rows(0, 0), [0], parties), lambda s, own: learn_horizontal(s, own, task, parties), declared)


def test_more_rows_than_moments_are_exact_for() -> None:
    wide = Numeric("n", Decimal(0), Decimal(1), 2**31 - 1)
    task = NaiveBayesParameters(TARGET, (wide,))
    rows = LabelledRows(np.array([0, 1, 2, 0, 1]), (np.array([2**31 - 1, 0, 5, 7, 2**31 - 1]),))
    assert task.max_rows == 4
    declared = openings(task, PARTIES[:2], PARTIES[:2], vertical=False, everywhere=True)

    def go(some: LabelledRows) -> dict[str, Learnt[NaiveBayes]]:
        data = parted(some, [2], PARTIES[:2])
        return run(data, lambda s, own: learn_horizontal(s, own, task, PARTIES[:2]), declared)

    fewer = taken(rows, np.arange(4))
    check(go(fewer), PARTIES[:2], fewer, task)
    with fails("E100"):
        go(rows)


def test_a_column_must_be_at_exactly_one_party() -> None:
    task, rows, parties = small_task(), small_rows(2, 9), PARTIES[:2]
    attributes = (task.target, *task.attributes)
    columns = aligned(rows, attributes, ("north", "north", "south"), parties)
    declared = openings(task, parties, parties, vertical=True, everywhere=True)
    for change in ({"north": {}}, {"south": columns["north"].cells}):
        changed = {
            party: type(each)({**each.cells, **change[party]} if change.get(party) else {}, each.n_positions)
            if party in change
            else each
            for party, each in columns.items()
        }
        with fails("E100"):
            run(changed, lambda s, own: learn_vertical(s, pairs_of(s), own, task, parties), declared)


@pytest.mark.parametrize("vertical", [True, False])
def test_a_view_depends_on_the_declared_output_alone(vertical: bool) -> None:
    """The others exchange rows, or all bring them into another order: what is opened to the learner adds up to the
    same, and the messages are of the same kinds and sizes."""
    task, parties = small_task(), PARTIES[:3]
    rows, views, models = small_rows(3, 60), [], []
    for order in (np.arange(60), np.r_[np.arange(20), np.arange(40, 60), np.arange(20, 40)]):
        mixed, frames = taken(rows, order), []
        declared = openings(task, parties, ("north",), vertical=vertical, everywhere=True)
        if vertical:
            data = aligned(mixed, (task.target, *task.attributes), ("north", "south", "east"), parties)
            out = run(
                data, lambda s, own: learn_vertical(s, pairs_of(s), own, task, ("north",)), declared, frames=frames
            )
        else:
            data = parted(mixed, [20, 40], parties)
            out = run(data, lambda s, own: learn_horizontal(s, own, task, ("north",)), declared, frames=frames)
        models.append(out["north"].model)
        views.append([shapes(frames, party) for party in parties])
        assert not any(label in ("counts", "moments") and who != "north" for label, who in opened(frames))
    assert_same(*models)
    assert views[0] == views[1]


def test_totals_that_no_rows_have_are_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that counts wrongly is found out where its counts do not add up."""
    task, parties = small_task(), PARTIES[:2]
    declared = openings(task, parties, parties, vertical=False, everywhere=True)
    honest = joint.counts_of

    def wrong(rows: LabelledRows, task: NaiveBayesParameters) -> np.ndarray:
        counts = honest(rows, task)
        counts[-1] += rows.n_rows == 4
        return counts

    monkeypatch.setattr(joint, "counts_of", wrong)
    with fails("E400") as caught:
        run(parted(small_rows(4, 10), [4], parties), lambda s, own: learn_horizontal(s, own, task, parties), declared)
    assert caught.value.party in parties


def test_the_statement_speaks_of_two_parties() -> None:
    task = small_task()
    two, three = (
        " ".join(line.exact for line in learned(task, PARTIES[:n], PARTIES[:1], vertical=False)) for n in (2, 3)
    )
    assert "the other's rows" in two
    assert "the other's rows" not in three


@pytest.mark.turn(2, "real tables")
@pytest.mark.data
def test_real_rows_equal_scikit_learn(shared_data) -> None:
    task, rows = adult(shared_data, "adult_45222.csv.gz")
    parties = PARTIES[:3]
    declared = openings(task, parties, parties, vertical=False, everywhere=True)
    out = run(parted(rows, [9_000, 31_000], parties), lambda s, own: learn_horizontal(s, own, task, parties), declared)
    model = out["east"].model
    assert_equals_sklearn(model, rows)
    accuracy = float((model.predict(rows.cells) == rows.classes).mean())
    assert accuracy > 0.79  # the larger class alone: 0.75


@pytest.mark.turn(2, "real tables")
@pytest.mark.data
@pytest.mark.slow
def test_real_columns_equal_scikit_learn(shared_data) -> None:
    task, rows = adult(shared_data, "adult_45222.csv.gz")
    rows, parties = taken(rows, np.arange(0, rows.n_rows, 9)), PARTIES[:3]
    attributes = (task.target, *task.attributes)
    holders = [parties[place % 3] for place in range(len(attributes))]
    declared = openings(task, parties, parties, vertical=True, everywhere=True)
    data = aligned(rows, attributes, holders, parties)
    out = run(data, lambda s, own: learn_vertical(s, pairs_of(s), own, task, parties), declared)
    check(out, parties, rows, task)
    assert_equals_sklearn(out["north"].model, rows)
