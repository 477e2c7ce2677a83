"""Gradient descent whose gradients are averages of what users perturbed; no user takes part twice.

    for each group of users, t = 1, 2, …
        server  publishes the parameters β_t
        user    g = the gradient of its record's loss at β_t, each coordinate cut to −1 … 1; reports g with ε
        server  β_(t+1) = β_t − γ/√t · (mean of the group's g + λ·β_t)

The result is the average of the second half of all β_t, which noise moves less than the last one (Rakhlin, Shamir and
Sridharan, "Making Gradient Descent Optimal for Strongly Convex Stochastic Optimization", ICML 2012). The regularisation
λ is no secret: the server adds its gradient itself, where the paper's users do, so that cutting and noise spare it.

Source: Wang, Xiao, Yang et al., ICDE 2019, section V.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.learning.losses import LOSSES
from ldp.numeric.vectors import SampledVector, VectorEstimate
from ldp.reports import Reports
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

_UNTOLD: Final = 30  # a group leaves a coordinate out with a probability below e^-30


class Descent:
    """The state between two groups of users; one object serves both halves in a simulation.

    Args:
        dimensions: Of β.
        epsilon: The privacy budget ε of each user.
        loss: `logistic`, `squared` or `hinge`.
        rate: γ, the first step's length.
        regularisation: λ, of the loss λ/2·|β|².
        mechanism: For a coordinate: `hm`, `pm`, `duchi` or `laplace`.

    Attributes:
        mechanism: What users perturb gradients with.
        parameters: β, shape (dimensions,): what the server publishes.
        history: All β so far, beginning with zeros.

    Raises:
        ConfigurationError: There is no such loss, or the rate or regularisation is out of range.
    """

    def __init__(
        self,
        dimensions: int,
        epsilon: float,
        loss: str = "logistic",
        *,
        rate: float = 1.0,
        regularisation: float = 1e-4,
        mechanism: str = "hm",
    ) -> None:
        if loss not in LOSSES:
            raise ConfigurationError(f"there is no loss '{loss}'; take one of {', '.join(LOSSES)}")
        if not 0 < rate < math.inf or not 0 <= regularisation < math.inf:
            raise ConfigurationError("the rate must be a positive number, and the regularisation must not be negative")
        self.mechanism = SampledVector(dimensions, epsilon, mechanism, clip=True)
        self.parameters: Floats = np.zeros(dimensions)
        self.history = [self.parameters]
        self._slopes, self._rate, self._regularisation = LOSSES[loss], rate, regularisation

    @property
    def least_group(self) -> int:
        """How many users a group needs so that each coordinate is reported by one at least."""
        d = self.mechanism.dimensions
        return math.ceil(d / self.mechanism.k * (math.log(d) + _UNTOLD)) if d > self.mechanism.k else 1

    def gradients(self, features: Floats, targets: Floats) -> Floats:
        """The users' own gradients at the published parameters, before they are cut.

        Args:
            features: Shape (n, dimensions).
            targets: Shape (n,).

        Returns:
            Shape (n, dimensions).
        """
        return self._slopes(features @ self.parameters, targets)[:, None] * features

    def privatise(self, features: Floats, targets: Floats, rng: Randomness | None = None) -> Reports:
        """The users' half: each one's gradient, cut and perturbed; arguments as of `gradients`.

        Raises:
            InputDataError: A feature or target is missing or infinite.
        """
        return self.mechanism.privatise(self.gradients(features, targets), rng)

    def step(self, gradient: VectorEstimate) -> None:
        """The server's half: one step against a group's mean gradient."""
        length = self._rate / math.sqrt(len(self.history))
        self.parameters = self.parameters - length * (gradient.means + self._regularisation * self.parameters)
        self.history.append(self.parameters)

    @property
    def averaged(self) -> Floats:
        """The average of the second half of all parameters; shape (dimensions,)."""
        found: Floats = np.mean(self.history[len(self.history) // 2 :], axis=0)
        return found

    def run(self, features: Floats, targets: Floats, iterations: int, rng: Randomness) -> Floats:
        """Both halves in one place, for simulations: every user is in one of equal groups, by chance.

        Args:
            features: Shape (n, dimensions).
            targets: Shape (n,).
            iterations: How many groups.
            rng: The source of randomness.

        Returns:
            `averaged`.

        Raises:
            ConfigurationError: The groups are too small to report every coordinate.
        """
        size = len(features) // iterations
        if size < self.least_group:
            raise ConfigurationError(
                f"{len(features):,} users in {iterations} groups are too few for {self.mechanism.dimensions} "
                f"coordinates; a group needs {self.least_group:,}: take fewer iterations or more users"
            )
        for group in np.array_split(rng.permutation(len(features)), iterations):
            reports = self.privatise(features[group], targets[group], rng)
            self.step(Aggregator(self.mechanism).add(reports).estimate())
        return self.averaged
