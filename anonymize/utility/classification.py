"""Classification: how well a classifier learns from a release, compared with the original (LeFevre et al. 2006).

scikit-learn is needed, and imported only here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.cells import SUPPRESSED, Interval, parse
from anonymize.columns import number_of, text_of
from anonymize.release import Release
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Learner = Callable[[int], Any]


@dataclass(frozen=True)
class ClassificationAccuracy:
    """Shares of rows that are classified rightly.

    Attributes:
        original: Learnt from the original, tested on it (cross-validated).
        release: Learnt from the release. Where published rows belong to input rows: tested on the release, by the same
            folds. Where they are synthetic: tested on the original.
        baseline: The most frequent class alone.
    """

    original: float
    release: float
    baseline: float

    @property
    def kept(self) -> float:
        """Which share of what the original gains over the baseline is left; NaN where it gains nothing."""
        gain = self.original - self.baseline
        return (self.release - self.baseline) / gain if gain > 0 else float("nan")


def classification_accuracy(
    table: Table,
    release: Release,
    target: str,
    rng: Randomness,
    *,
    features: Sequence[str] | None = None,
    folds: int = 5,
    learner: Learner | None = None,
) -> ClassificationAccuracy:
    """Compares a classifier that learns from a release with one that learns from the original.

    Cells of numbers, intervals by their middle, are numbers; all others are categories. A suppressed cell of a column
    of numbers is the column's median. Rows that are left out or blanked can neither be learnt from nor classified.

    Args:
        table: The original.
        release: Made of it.
        target: The column to predict; it must be published as it was.
        rng: Draws the folds and the classifier's seed.
        features: Columns to predict from; all published columns but the target if not given.
        folds: Of the cross-validation.
        learner: Makes a scikit-learn classifier of a seed; a decision tree of leaves of 20 rows at least if not given.

    Raises:
        ConfigurationError: scikit-learn is not installed, a column is not published, or there are fewer rows than
            folds.
    """
    try:
        from sklearn.compose import make_column_transformer  # type: ignore[import-untyped]
        from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
        from sklearn.preprocessing import OneHotEncoder  # type: ignore[import-untyped]
        from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigurationError(
            "Classification accuracy needs scikit-learn, which is not installed: pip install scikit-learn."
        ) from error
    published, rows = release.table, np.arange(table.n_rows)
    if release.rows is not None:
        shown = np.ones(len(release.rows), np.bool_) if release.classes is None else release.classes >= 0
        published, rows = published.filter(pa.array(shown)), release.rows[shown]
    names = list(features) if features is not None else [name for name in published.column_names if name != target]
    for name in (*names, target):
        if name not in published.column_names:
            raise ConfigurationError(f'Column "{name}" is not published, so nothing can be learnt from it.')
    if not 2 <= folds <= len(rows):
        raise ConfigurationError(f"{folds} folds cannot be made of {len(rows)} rows; choose from 2 to {len(rows)}.")
    make = learner or (lambda seed: DecisionTreeClassifier(min_samples_leaf=20, random_state=seed))
    seed = rng.below(1 << 31)
    given = table.data.take(pa.array(rows))
    original, labels = _features(given, names), _labels(given, target)
    generalised, learnt = _features(published, names), _labels(published, target)

    def fitted(x: Sequence[NDArray[Any]], y: NDArray[Any], chosen: NDArray[Any]) -> Any:
        texts = [place for place, column in enumerate(x) if column.dtype == object]
        encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts), remainder="passthrough")
        return make_pipeline(encoder, make(seed)).fit(_matrix(x)[chosen], y[chosen])

    fold = rng.permutation(len(rows)) % folds

    def validated(x: Sequence[NDArray[Any]], y: NDArray[Any]) -> float:
        right = 0
        for each in range(folds):
            model = fitted(x, y, np.flatnonzero(fold != each))
            tested = np.flatnonzero(fold == each)
            right += int((model.predict(_matrix(x)[tested]) == y[tested]).sum())
        return right / len(y)

    if release.rows is None:
        model = fitted(generalised, learnt, np.arange(len(learnt)))
        after = float((model.predict(_matrix(original)) == labels).mean())
    else:
        after = validated(generalised, learnt)
    counts = np.unique(labels, return_counts=True)[1]
    return ClassificationAccuracy(validated(original, labels), after, float(counts.max() / counts.sum()))


def _matrix(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.stack([column.astype(object) for column in columns], axis=1)


def _labels(table: pa.Table, name: str) -> NDArray[Any]:
    return np.array([text_of(value) if value is not None else "" for value in table.column(name).to_pylist()], object)


def _features(table: pa.Table, names: Sequence[str]) -> list[NDArray[Any]]:
    """By column, numbers or texts, shape (rows,)."""
    return [_feature(table.column(name)) for name in names]


def _feature(column: pa.ChunkedArray) -> NDArray[Any]:
    texts = ["" if value is None else text_of(value) for value in column.to_pylist()]
    numbers = {text: _number(text) for text in set(texts)}
    if all(number is not None or text == SUPPRESSED for text, number in numbers.items()):
        known = np.array([numbers[text] for text in texts if numbers[text] is not None], np.float64)
        middle = float(np.median(known)) if known.size else 0.0
        return np.array([middle if numbers[text] is None else numbers[text] for text in texts], np.float64)
    return np.array(texts, object)


def _number(text: str) -> float | None:
    """The number that a cell writes, of an interval its middle; None of anything else."""
    cell = parse(text)
    try:
        if isinstance(cell, Interval):
            return (float(number_of(cell.low)) + float(number_of(cell.high))) / 2
        return float(number_of(text))
    except ValueError:
        return None
