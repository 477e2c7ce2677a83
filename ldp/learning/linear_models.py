"""Linear models as estimators with `fit` and `predict`, learned by `Descent`.

`fit` plays all users and the server. Over a network the same `Descent` runs with its halves apart.
Ranges of features and targets and the classes are parameters: taken from the data, they would reveal something of the
data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from crypto.primitives.randomness import Randomness
from ldp.learning.descent import Descent
from ldp.numeric.interval import Interval
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]


class LinearModel:
    """What the models share: features scaled to −1 … 1, an intercept, the descent.

    Args:
        epsilon: The privacy budget ε of each user.
        low: The lower end of the features' ranges, for all or for each; not to be computed from the data.
        high: Their upper end.
        iterations: In how many groups users are asked; fewer where groups would be too small.
        rate: The first step's length; None for one that suits the loss.
        regularisation: λ, of the loss λ/2·|β|², for scaled features and the intercept.
        mechanism: For a coordinate of a gradient: `hm`, `pm`, `duchi` or `laplace`.

    Attributes:
        coef_: Shape (features,), on the features' own scale.
        intercept_: The prediction where all features are 0.
        n_iter_: How many groups there were.
        exact_epsilon_: The ε that a user really spent.
    """

    _loss: ClassVar[str]
    _rate: ClassVar[float]

    def __init__(
        self,
        epsilon: float,
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        *,
        iterations: int = 100,
        rate: float | None = None,
        regularisation: float = 1e-4,
        mechanism: str = "hm",
    ) -> None:
        self.epsilon, self.low, self.high = epsilon, low, high
        self.iterations, self.rate, self.regularisation, self.mechanism = iterations, rate, regularisation, mechanism

    def _learn(self, features: ArrayLike, targets: Floats, rng: Randomness | None) -> None:
        scaled = self._scaled(features)
        if len(scaled) != len(targets):
            raise InputDataError(f"there are {len(scaled):,} records and {len(targets):,} targets; each needs one")
        if not len(scaled):
            raise InputDataError("there is no record to learn from")
        descent = Descent(
            scaled.shape[1],
            self.epsilon,
            self._loss,
            rate=self._rate if self.rate is None else self.rate,
            regularisation=self.regularisation,
            mechanism=self.mechanism,
        )
        if self.iterations < 1:
            raise ConfigurationError("learning needs one iteration at least")
        self.n_iter_ = max(1, min(self.iterations, len(scaled) // descent.least_group))
        found = descent.run(scaled, targets, self.n_iter_, Randomness.from_os() if rng is None else rng)
        self.exact_epsilon_ = descent.mechanism.exact_epsilon
        low, high = self._ranges(scaled.shape[1] - 1)
        self.coef_ = found[:-1] * 2 / (high - low)
        self.intercept_ = float(found[-1] - self.coef_ @ (low + high) / 2)

    def _scaled(self, features: ArrayLike) -> Floats:
        """Features between −1 and 1, and a column of ones for the intercept."""
        array = np.asarray(features)
        if array.ndim != 2 or not array.shape[1]:
            raise InputDataError(f"features must have the shape (users, features), not {array.shape}")
        low, high = self._ranges(array.shape[1])
        columns = [
            Interval(*ends).shares(each) for each, *ends in zip(array.T, low.tolist(), high.tolist(), strict=True)
        ]
        return np.column_stack([*(2 * each - 1 for each in columns), np.ones(len(array))])

    def _ranges(self, d: int) -> tuple[Floats, Floats]:
        ends = [np.asarray(each, dtype=np.float64) for each in (self.low, self.high)]
        if any(each.shape not in {(), (d,)} for each in ends):
            raise ConfigurationError(
                f"the ranges' ends must be numbers, or lists of one number for each of {d} features"
            )
        return np.broadcast_to(ends[0], d), np.broadcast_to(ends[1], d)

    def decision_function(self, features: ArrayLike) -> Floats:
        """The linear predictions; shape (n,).

        Args:
            features: Shape (n, features); they may lie outside the ranges.
        """
        predictions: Floats = np.asarray(features, dtype=np.float64) @ self.coef_ + self.intercept_
        return predictions


class LinearClassifier(LinearModel):
    """A linear model of two classes.

    Args:
        epsilon: The privacy budget ε of each user.
        low: The lower end of the features' ranges, for all or for each; not to be computed from the data.
        high: Their upper end.
        classes: The two classes.
        **options: Of `LinearModel`.
    """

    def __init__(
        self,
        epsilon: float,
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        *,
        classes: Sequence[Any] = (0, 1),
        **options: Any,
    ) -> None:
        super().__init__(epsilon, low, high, **options)
        if len(classes) != 2 or classes[0] == classes[1]:
            raise ConfigurationError(f"a linear classifier separates two classes, not {len(set(classes))}")
        self.classes = tuple(classes)

    def fit(self, features: ArrayLike, classes: ArrayLike, rng: Randomness | None = None) -> Self:
        """Learns from all users, each asked once.

        Args:
            features: Shape (n, features), within the ranges.
            classes: Shape (n,), of the two classes.
            rng: The source of randomness; by default the operating system's.

        Raises:
            InputDataError: A feature is outside its range or missing, or a class is another one.
            ConfigurationError: There are too few users for so many features.
        """
        array = np.asarray(classes)
        upper = array == self.classes[1]
        if array.ndim != 1 or not np.all(upper | (array == self.classes[0])):
            raise InputDataError(f"a class is neither {self.classes[0]!r} nor {self.classes[1]!r}")
        self._learn(features, np.where(upper, 1.0, -1.0), rng)
        return self

    def predict(self, features: ArrayLike) -> NDArray[Any]:
        """The classes; shape (n,)."""
        return np.asarray(self.classes)[(self.decision_function(features) > 0).astype(np.int64)]


class LogisticRegression(LinearClassifier):
    """Logistic regression: probabilities of two classes."""

    _loss = "logistic"
    _rate = 12.0  # the inverse of the curvature: 1/4 at most, times 1/3 for features spread over their ranges

    def predict_proba(self, features: ArrayLike) -> Floats:
        """The probabilities of the two classes; shape (n, 2)."""
        upper = expit(self.decision_function(features))
        return np.column_stack([1 - upper, upper])


class LinearSVM(LinearClassifier):
    """A linear support vector machine: hinge loss."""

    _loss = "hinge"
    _rate = 2.0  # the loss has a kink and no curvature: found by trial, between 1 and 8 it matters little


class LinearRegression(LinearModel):
    """Least squares.

    Args:
        epsilon: The privacy budget ε of each user.
        low: The lower end of the features' ranges, for all or for each; not to be computed from the data.
        high: Their upper end.
        target_low: The lower end of the target's range.
        target_high: Its upper end.
        **options: Of `LinearModel`.
    """

    _loss = "squared"
    _rate = 1.0  # the inverse of the curvature in the direction of one feature, at most

    def __init__(
        self,
        epsilon: float,
        low: float | Sequence[float] = -1.0,
        high: float | Sequence[float] = 1.0,
        *,
        target_low: float = -1.0,
        target_high: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(epsilon, low, high, **options)
        self.target_low, self.target_high = target_low, target_high
        self._targets = Interval(target_low, target_high)

    def fit(self, features: ArrayLike, targets: ArrayLike, rng: Randomness | None = None) -> Self:
        """Learns from all users, each asked once.

        Args:
            features: Shape (n, features), within the ranges.
            targets: Shape (n,), within the target's range.
            rng: The source of randomness; by default the operating system's.

        Raises:
            InputDataError: A feature or target is outside its range or missing.
            ConfigurationError: There are too few users for so many features.
        """
        self._learn(features, 2 * self._targets.shares(targets) - 1, rng)
        self.coef_ = self.coef_ * self._targets.radius
        self.intercept_ = self._targets.at(self.intercept_)
        return self

    def predict(self, features: ArrayLike) -> Floats:
        """The targets; shape (n,)."""
        return self.decision_function(features)
