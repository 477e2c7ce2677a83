"""Classifiers from perturbed records: as accurate as what the noise leaves, and better than those that ignore it."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB
from sklearn.tree import DecisionTreeClassifier

from crypto.primitives.randomness import Randomness
from ldp.reconstruction.columns import Column
from ldp.reconstruction.decision_tree import RECONSTRUCTIONS, DecisionTree
from ldp.reconstruction.density import intervals
from ldp.reconstruction.naive_bayes import NaiveBayes
from ldp.reconstruction.noise import AdditiveNoise, GaussianNoise, UniformNoise
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.reconstruction.agrawal import RANGES, groups, people

pytestmark = pytest.mark.turn(3)

Floats = NDArray[np.float64]
KINDS = (GaussianNoise, UniformNoise)


@dataclass(frozen=True)
class Task:
    """Records and classes to learn from, and others to be told."""

    records: Floats
    labels: NDArray[Any]
    new: Floats
    truth: NDArray[Any]
    edges: tuple[Floats, ...]

    def columns(self, kind: type[AdditiveNoise] | None, privacy: float = 1.0) -> list[Column]:
        """With noise whose 95 % interval is `privacy` times a column's range; without a kind, none."""
        return [
            Column(ends, None if kind is None else kind.of_width(privacy * (ends[-1] - ends[0]))) for ends in self.edges
        ]

    def perturbed(self, columns: list[Column], seed: int = 1) -> Floats:
        rng = Randomness.from_seed(seed)
        noises = [column.noise for column in columns]
        return np.stack(
            [noise.privatise(self.records[:, at], rng) for at, noise in enumerate(noises) if noise is not None], axis=1
        )

    def accuracy(self, classifier: DecisionTree | NaiveBayes) -> float:
        return float(np.mean(classifier.predict(self.new) == self.truth))


@cache
def agrawal(function: int, n: int = 10_000) -> Task:
    records, new = people(n, function), people(5000, 99)
    edges = tuple(intervals(*ends, 5 if name == "education" else 30) for name, ends in RANGES.items())
    return Task(records, groups(function, records), new, groups(function, new), edges)


@cache
def accuracies(function: int, kind: type[AdditiveNoise]) -> dict[str, float]:
    """Of trees and naive Bayes at 100 % privacy, in the papers' words; `noisy` takes perturbed values for true ones."""
    task = agrawal(function)
    clean, columns = task.columns(None), task.columns(kind)
    noisy = task.perturbed(columns)
    found = {
        "clean": task.accuracy(DecisionTree(clean).fit(task.records, task.labels)),
        "noisy": task.accuracy(DecisionTree(clean).fit(noisy, task.labels)),
        "bayes": task.accuracy(NaiveBayes(columns).fit(noisy, task.labels)),
        "bayes clean": task.accuracy(NaiveBayes(clean).fit(task.records, task.labels)),
        "bayes noisy": task.accuracy(NaiveBayes(clean).fit(noisy, task.labels)),
    }
    for each in RECONSTRUCTIONS:
        found[each] = task.accuracy(DecisionTree(columns, each).fit(noisy, task.labels))
    return found


# Seeds are fixed, so the results are. Over five other seeds every margin was exceeded: the gain of by-class was 9 to 23
# points (function 1, Gaussian), 41 to 49 (uniform); on average over the functions 3 to 8 and 16 to 17.
@pytest.mark.parametrize(("kind", "margin"), slowly([(GaussianNoise, 0.05), (UniformNoise, 0.3)], now=[0]))
def test_by_class_beats_what_ignores_the_noise(kind: type[AdditiveNoise], margin: float) -> None:
    found = accuracies(1, kind)
    assert found["by-class"] > found["noisy"] + margin
    assert found["bayes"] > found["bayes noisy"] + margin / 2
    assert accuracies(3, kind)["by-class"] > accuracies(3, kind)["noisy"]


@pytest.mark.parametrize(("kind", "margin"), slowly([(GaussianNoise, 0.02), (UniformNoise, 0.1)], now=[1]))
def test_on_all_functions_together(kind: type[AdditiveNoise], margin: float) -> None:
    runs = [accuracies(function, kind) for function in range(1, 6)]
    mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    assert mean["by-class"] > mean["noisy"] + margin
    assert mean["local"] > mean["noisy"] + margin
    assert mean["by-class"] > mean["global"]
    assert mean["bayes"] > mean["bayes noisy"] + 0.04
    assert mean["bayes"] > mean["bayes clean"] - 0.06
    assert mean["by-class"] > mean["clean"] - 0.13


def test_without_noise_the_tree_is_that_of_cart() -> None:
    task = agrawal(2)
    columns = task.columns(None)
    codes, new = (
        np.stack([column.codes(table[:, at]) for at, column in enumerate(columns)], axis=1)
        for table in (task.records, task.new)
    )
    least = int(np.ceil(0.01 * len(codes)))
    cart = DecisionTreeClassifier(max_depth=5, min_samples_leaf=least, random_state=0).fit(codes, task.labels)
    ours = DecisionTree(columns, max_depth=5).fit(task.records, task.labels)
    # Where two cuts are equally good, either may be taken.
    assert np.mean(ours.predict(task.new) == cart.predict(new)) > 0.995


def test_without_noise_naive_bayes_is_that_of_counts() -> None:
    task = agrawal(3)
    columns = task.columns(None)
    codes, new = (
        np.stack([column.codes(table[:, at]) for at, column in enumerate(columns)], axis=1)
        for table in (task.records, task.new)
    )
    other = CategoricalNB(alpha=1.0, min_categories=[column.intervals for column in columns]).fit(codes, task.labels)
    ours = NaiveBayes(columns).fit(task.records, task.labels)
    assert ours.predict_log_proba(task.new) == pytest.approx(other.predict_log_proba(new))


@pytest.mark.parametrize("kind", KINDS)
def test_assigned_intervals_have_the_reconstructed_shares_in_order(kind: type[AdditiveNoise]) -> None:
    column = Column(intervals(0, 1, 12), kind.of_width(1.0))
    assert column.noise is not None
    noisy = column.noise.privatise(np.random.default_rng(2).beta(2, 6, 5000), Randomness.from_seed(2))
    codes = column.assigned(noisy)
    shares = np.bincount(codes, minlength=12) / 5000
    assert shares == pytest.approx(column.density(noisy).probabilities, abs=1.01 / 5000)
    assert (np.diff(codes[np.argsort(noisy)]) >= 0).all()
    plain = Column(column.edges)
    assert np.array_equal(plain.assigned([-1.0, 0.01, 0.99, 2.0]), [0, 0, 11, 11])


def test_columns_without_noise_go_with_perturbed_ones() -> None:
    task = agrawal(1)
    columns = task.columns(UniformNoise)
    noisy = task.perturbed(columns)
    mixed = [Column(column.edges, None if at == 2 else column.noise) for at, column in enumerate(columns)]
    noisy[:, 2] = task.records[:, 2]
    for reconstruction in RECONSTRUCTIONS:  # function 1 is about age alone, which is column 2
        assert task.accuracy(DecisionTree(mixed, reconstruction).fit(noisy, task.labels)) > 0.99


def test_leaves_are_as_large_and_as_deep_as_asked() -> None:
    task = agrawal(2)
    tree = DecisionTree(task.columns(None), max_depth=3, min_share=0.1).fit(task.records, task.labels)
    waiting, leaves = [(tree.root_, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        assert node.counts.sum() >= 0.1 * len(task.records)
        assert depth <= 3
        if node.left is None or node.right is None:
            leaves += 1
            continue
        assert np.array_equal(node.counts, node.left.counts + node.right.counts)
        waiting += [(node.left, depth + 1), (node.right, depth + 1)]
    assert leaves == tree.root_.leaves


def test_labels_may_be_texts_and_more_than_two() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(0, 3, (6000, 1))
    labels = np.array(["low", "middle", "top"])[values[:, 0].astype(int)]
    noise = GaussianNoise(0.5)
    noisy = noise.privatise(values[:, 0], Randomness.from_seed(1))[:, None]
    for kind in (NaiveBayes, DecisionTree):
        found = kind([Column(intervals(0, 3, 30), noise)]).fit(noisy, labels)
        assert list(found.predict([[0.5], [1.5], [2.5]])) == ["low", "middle", "top"]
        again = kind(**found.get_params()).fit(noisy, labels)
        assert np.array_equal(again.predict(values), found.predict(values))


def test_ages_hours_and_education_tell_incomes(shared_data: Path) -> None:
    with gzip.open(shared_data / "adult" / "adult_45222.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    names = ("age", "education-num", "hours-per-week")
    records = np.array([[float(row[name]) for name in names] for row in rows])
    labels = np.array([row["income"].strip() for row in rows])
    order = np.random.default_rng(0).permutation(len(rows))
    learn, rest = order[:30_000], order[30_000:]
    edges = (intervals(16.5, 90.5, 37), intervals(0.5, 16.5, 16), intervals(0.5, 99.5, 33))
    task = Task(records[learn], labels[learn], records[rest], labels[rest], edges)
    columns, clean = task.columns(GaussianNoise), task.columns(None)
    noisy = task.perturbed(columns)
    for kind in (DecisionTree, NaiveBayes):
        reached = task.accuracy(kind(columns).fit(noisy, task.labels))
        # The standard error of an accuracy over 15,000 records is 0.0035.
        assert reached > task.accuracy(kind(clean).fit(noisy, task.labels)) + 0.02
        assert reached > task.accuracy(kind(clean).fit(task.records, task.labels)) - 0.02


@pytest.mark.parametrize("kind", [NaiveBayes, DecisionTree])
def test_wrong_input_is_refused(kind: type[NaiveBayes] | type[DecisionTree]) -> None:
    columns = [Column(intervals(0, 1, 4)), Column(intervals(0, 1, 4), UniformNoise(0.5))]
    with fails("E100"):
        kind([])
    with fails("E100"):
        Column(np.array([0.0, 1.0]))
    with fails("E101"):
        kind(columns).predict([[0.5, 0.5]])
    good, labels = [[0.1, 0.2], [0.3, 0.4]], [0, 1]
    for records in ([], [[0.1], [0.2]], [0.1, 0.2], [[0.1, np.nan], [0.2, 0.3]], [["a", "b"], ["c", "d"]]):
        with pytest.raises(InputDataError):
            kind(columns).fit(records, labels)
    for wrong in ([0], [0, 0], [[0, 1]]):
        with pytest.raises(InputDataError):
            kind(columns).fit(good, wrong)
    with fails("E101"):
        kind(columns).fit([[0.1, 9.0], [0.3, 0.4]], labels)
    with pytest.raises(InputDataError):
        kind(columns).fit(good, labels).predict([[0.5]])


def test_wrong_parameters_are_refused() -> None:
    columns = [Column(intervals(0, 1, 4))]
    for options in ({"reconstruction": "magic"}, {"max_depth": 0}, {"min_share": 0.5}, {"min_share": -1.0}):
        with pytest.raises(ConfigurationError):
            DecisionTree(columns, **options)
    for smoothing in (0.0, -1.0, np.nan, np.inf):
        with fails("E100"):
            NaiveBayes(columns, smoothing)
