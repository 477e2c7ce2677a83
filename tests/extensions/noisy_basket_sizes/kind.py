"""How many rows of all parties have how many items, with discrete Laplace noise of every party.

A record is in one of the counts, so one record more changes one of them by 1, and the noise of any single party makes
all of them (ε, δ)-differentially private.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from jobs.kinds.kind import ALL
from jobs.privacy_account import Charge
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.session import Session
from tests.extensions.basket_sizes.kind import BasketSizes, asked


class NoisyBasketSizes(BasketSizes):
    """How many rows of all parties have how many items, with discrete Laplace noise of every party."""

    estimates = True
    noisy_rows = True

    def tables(self, spec: JobSpec) -> Mapping[str, frozenset[str]]:
        return {"basket_sizes": ALL, "privacy": frozenset({"model", "epsilon", "delta"})}

    def check(self, spec: JobSpec) -> None:
        asked(spec)
        try:
            _law(spec)
        except ValueError as error:
            raise ConfigurationError(f"[privacy] {error}") from None

    def noise(self, session: Session, spec: JobSpec, number: int) -> NDArray[np.int64]:
        law, random = _law(spec), session.randomness("noise")
        return np.array([law.sample(random) for _ in range(number)], np.int64)

    def mean(self, spec: JobSpec) -> int:
        return len(spec.job.parties) * _law(spec).shift

    def charge(self, spec: JobSpec) -> Charge:
        return Charge("laplace", None, spec.privacy.epsilon, spec.privacy.delta)


def _law(spec: JobSpec) -> TruncatedDiscreteLaplace:
    return TruncatedDiscreteLaplace.for_delta(Fraction(spec.privacy.epsilon or 0), Fraction(spec.privacy.delta or 0))


KIND: Final = NoisyBasketSizes()
