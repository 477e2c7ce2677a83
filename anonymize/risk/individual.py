"""Individual risk of Benedetti and Franconi (1998): a row's chance to be re-identified when only a sample is published.

Of a class with f sample rows the population's size F is unknown. Given f, F is taken as negative binomial with f
successes of probability π, the sampling fraction of the class; the risk is the expectation of 1/F.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import hyp2f1

from link.errors import ConfigurationError

_LARGE: Final = 50.0


def individual_risk(sizes: ArrayLike, fractions: ArrayLike) -> NDArray[np.float64]:
    """E[1/F | f] = π^f / f · ₂F₁(f, f; f + 1; 1 − π), for each class.

    Args:
        sizes: Shape (c,): sample rows f of each class, from 1.
        fractions: Shape (c,) or one number: sampling fraction π of each class in (0, 1], for example f by the sum of
            the rows' sampling weights.

    Returns:
        Shape (c,), in (0, 1/f].

    Raises:
        ConfigurationError: A size is below 1, or a fraction is outside (0, 1].
    """
    f = np.asarray(sizes, dtype=np.float64).reshape(-1)
    pi = np.broadcast_to(np.asarray(fractions, dtype=np.float64), f.shape)
    if (f < 1).any():
        raise ConfigurationError("Individual risk is that of rows that exist: every class has one at least.")
    if ((pi <= 0) | (pi > 1)).any():
        raise ConfigurationError("A sampling fraction lies above 0 and is at most 1.")
    # Euler's transformation, ₂F₁(f, f; f + 1; z) = (1 − z)^(1 − f) ₂F₁(1, 1; f + 1; z), takes π^f into the series, so
    # that neither a tiny power nor a huge sum arises for large classes.
    sums = hyp2f1(1.0, 1.0, np.minimum(f, _LARGE) + 1.0, 1.0 - pi)
    large = f > _LARGE
    sums[large] = _series(f[large], 1.0 - pi[large])
    risk: NDArray[np.float64] = pi / f * sums
    return risk


def _series(f: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """₂F₁(1, 1; f + 1; z) for f above `_LARGE`, where library code overflows and the series is short.

    Its terms n!/((f + 1)…(f + n))·zⁿ fall below 2⁻⁵³ of the sum within 25 terms.
    """
    total, term = np.ones_like(f), np.ones_like(f)
    for n in range(25):
        term = term * z * (n + 1) / (f + 1 + n)
        total += term
    return total
