"""Learning by perturbed gradients: what users compute, what they spend, and how near the models come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.certify import satisfies
from ldp.learning.descent import Descent
from ldp.learning.linear_models import LinearClassifier, LinearRegression, LinearSVM, LogisticRegression
from ldp.learning.losses import LOSSES
from tests.errors import fails

pytestmark = pytest.mark.turn(6)

LOW, HIGH = [0, -1, -1, -1], [100, 1, 1, 3]


def people(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64], np.random.Generator]:
    """Features within LOW and HIGH, and a linear score of them."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(LOW, HIGH, (n, 4))
    return features, (features - [40, 0, 0, 1]) @ [0.06, 2.0, -1.0, 0.5], rng


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_gradients_are_derivatives(loss: str) -> None:
    values = {
        "logistic": lambda m, y: np.log1p(np.exp(-y * m)),
        "squared": lambda m, y: (m - y) ** 2 / 2,
        "hinge": lambda m, y: np.maximum(0, 1 - y * m),
    }[loss]
    rng = np.random.default_rng(1)
    features, targets = rng.uniform(-1, 1, (50, 3)), rng.choice([-1.0, 1.0], 50)
    descent = Descent(3, 1.0, loss)
    descent.parameters = rng.normal(size=3)
    found = descent.gradients(features, targets)
    step = 1e-6
    for j, unit in enumerate(np.eye(3)):
        ends = [values(features @ (descent.parameters + sign * step * unit), targets) for sign in (1, -1)]
        assert found[:, j] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


@pytest.mark.parametrize(("epsilon", "model"), [(1.0, LogisticRegression), (4.0, LinearSVM)])
def test_classifiers_come_near_the_one_without_noise(model: type[LinearClassifier], epsilon: float) -> None:
    features, score, rng = people(200_000)
    classes = np.where(rng.random(len(score)) < expit(score), "yes", "no")
    plain = (PlainLogisticRegression().fit(features[:20_000], classes[:20_000]).predict(features) == classes).mean()
    found = model(epsilon, LOW, HIGH, classes=("no", "yes")).fit(features, classes, Randomness.from_seed(1))
    fresh, fresh_score, rng = people(100_000, seed=2)
    fresh_classes = np.where(rng.random(len(fresh)) < expit(fresh_score), "yes", "no")
    assert (found.predict(fresh) == fresh_classes).mean() > plain - 0.02
    assert epsilon - 1e-8 < found.exact_epsilon_ <= epsilon


def test_logistic_coefficients_and_probabilities() -> None:
    features, score, rng = people(400_000)
    found = LogisticRegression(4.0, LOW, HIGH).fit(
        features, rng.random(len(score)) < expit(score), Randomness.from_seed(3)
    )
    assert found.coef_ * [50, 1, 1, 2] == pytest.approx([3, 2, -1, 1], abs=0.3)
    assert found.intercept_ == pytest.approx(-2.9, abs=0.4)
    probabilities = found.predict_proba(features)
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert np.abs(probabilities[:, 1] - expit(score)).mean() < 0.02


def test_linear_regression_comes_near_least_squares() -> None:
    features, score, rng = people(200_000)
    targets = np.clip(50 + 5 * score + 5 * rng.normal(size=len(score)), 0, 100)
    found = LinearRegression(2.0, LOW, HIGH, target_low=0, target_high=100).fit(
        features, targets, Randomness.from_seed(4)
    )
    plain = PlainLinearRegression().fit(features, targets)
    unexplained = [np.mean((each.predict(features) - targets) ** 2) / targets.var() for each in (found, plain)]
    assert unexplained[0] < unexplained[1] + 0.03


@pytest.mark.parametrize("mechanism", ["hm", "pm", "duchi", "laplace"])
def test_any_mechanism_learns(mechanism: str) -> None:
    features, score, _ = people(100_000)
    classes = (score > 0).astype(int)
    found = LogisticRegression(2.0, LOW, HIGH, mechanism=mechanism).fit(features, classes, Randomness.from_seed(5))
    assert (found.predict(features) == classes).mean() > 0.93


def test_each_user_reports_once() -> None:
    descent, n = Descent(3, 2.0), 30_000
    asked: list[NDArray[Any]] = []
    original = descent.privatise

    def counting(features: Any, targets: Any, rng: Any = None) -> Any:
        asked.append(features[:, 0])
        return original(features, targets, rng)

    descent.privatise = counting  # type: ignore[method-assign]
    names = np.arange(n) / n
    descent.run(np.column_stack([names, names, names]), np.ones(n), 7, Randomness.from_seed(6))
    assert sorted(len(group) for group in asked) == [4285, 4285, 4286, 4286, 4286, 4286, 4286]
    assert np.array_equal(np.sort(np.concatenate(asked)), names)


def test_a_report_of_a_gradient_keeps_epsilon() -> None:
    """A gradient is one of the mechanism's inputs, cut to its range, whatever record and parameters it comes from."""
    descent = Descent(2, 1.0, "squared", mechanism="duchi")
    assert descent.mechanism.exact_epsilon <= 1.0
    assert all(satisfies(each.channel(), descent.mechanism.share) for each in descent.mechanism.components)
    descent.parameters = np.array([1e6, -1e6])
    reports = descent.privatise(np.array([[1.0, -1.0]] * 1000), np.full(1000, -1.0), Randomness.from_seed(1))
    estimate = Aggregator(descent.mechanism).add(reports).estimate()
    assert np.abs((estimate.means - [1, -1]) / np.sqrt(estimate.variances)).max() < 6


def test_the_servers_half_needs_reports_only() -> None:
    rng, clients, server = Randomness.from_seed(7), Descent(3, 1.0), Descent(3, 1.0)
    for _ in range(3):
        clients.parameters = server.parameters
        sent = clients.privatise(np.ones((500, 3)), np.ones(500), rng).to_bytes()
        reports = server.mechanism.read(sent)
        server.step(Aggregator(server.mechanism).add(reports).estimate())
    assert len(server.history) == 4
    assert server.averaged.tolist() == np.mean(server.history[2:], axis=0).tolist()


def test_regularisation_shrinks() -> None:
    features, score, _ = people(60_000)
    free, held = (
        LogisticRegression(4.0, LOW, HIGH, regularisation=each).fit(features, score > 0, Randomness.from_seed(8))
        for each in (0.0, 0.3)
    )
    assert np.linalg.norm(held.coef_) < 0.7 * np.linalg.norm(free.coef_)


def test_groups_are_never_too_small() -> None:
    features, score, _ = people(2000)
    found = LogisticRegression(1.0, LOW, HIGH).fit(features, score > 0, Randomness.from_seed(9))
    assert found.n_iter_ == 2000 // Descent(5, 1.0).least_group < 100
    with fails("E100"):
        LogisticRegression(1.0, LOW, HIGH).fit(features[:50], score[:50] > 0)
    assert Descent(1, 1.0).least_group == 1


@pytest.mark.parametrize(
    "change",
    [
        {"features": [[50, 0, 0, 9.0]]},
        {"features": [[50, 0, math.nan, 1]]},
        {"features": [50, 0, 0, 1]},
        {"features": [[50, 0, 0, 1], [50, 0, 0, 1]]},
        {"features": np.zeros((0, 4)), "classes": []},
        {"classes": ["maybe"]},
        {"classes": [None]},
    ],
)
def test_wrong_data_are_refused(change: dict[str, Any]) -> None:
    data = {"features": [[50, 0, 0, 1]], "classes": [1]} | change
    with fails("E101"):
        LogisticRegression(1.0, LOW, HIGH).fit(**data)


def test_wrong_parameters_are_refused() -> None:
    features, classes = np.zeros((1000, 4)), np.zeros(1000)
    for wrong in (
        {"epsilon": 0},
        {"low": [0, 1]},
        {"high": -1.0},
        {"iterations": 0},
        {"rate": 0.0},
        {"regularisation": -1.0},
        {"mechanism": "magic"},
        {"classes": (1, 1)},
    ):
        with fails("E100"):
            LogisticRegression(**({"epsilon": 1.0} | wrong)).fit(features, classes)
    with fails("E100"):
        Descent(2, 1.0, "absolute")
    with fails("E101"):
        LinearRegression(1.0).fit(features, classes + 2)
