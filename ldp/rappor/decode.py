"""What RAPPOR's server does: which of some candidate texts do users have, and how many users have each?

Source: Erlingsson, Pihur and Korolova, CCS 2014, section 4: least squares on the bits' estimated shares, after the
LASSO where there are too many candidates for it; a candidate is reported if its coefficient is significant after a
Bonferroni correction. What differs from Google's `decode.R` is said where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse, stats

from crypto.primitives.randomness import Randomness
from ldp.bias_aware import selection_factor
from ldp.rappor.lasso import non_negative_lasso
from ldp.rappor.mechanism import BloomCounts
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

_CROWDED: Final = 0.8
"""The LASSO selects first if candidates exceed this share of the m·k bits, and leaves no more than that."""

_FALSE_SHARE: Final = 0.1
"""Of the bits' number: how many candidates that nobody has may pass the LASSO on average."""

_LEAST_RESAMPLES: Final = 5
_DEPENDENT: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What was found about each candidate.

    Attributes:
        candidates: S texts.
        n: How many reports.
        counts: Shape (S,): estimated numbers of users, not negative.
        deviations: Shape (S,): standard deviations of `counts`.
        p_values: Shape (S,): how likely noise alone gives as large a count.
        significant: Shape (S,): whether the p-value is below its share of the error that was allowed to all.
        others: A rough estimate of how many users have a text that is no candidate; too low if candidates are many.
    """

    candidates: tuple[str, ...]
    n: int
    counts: Floats
    deviations: Floats
    p_values: Floats
    significant: NDArray[np.bool_]
    others: float

    @property
    def frequencies(self) -> Floats:
        """`counts` as shares of n."""
        return self.counts / self.n

    def intervals(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Normal confidence intervals of the counts, each for itself, cut to 0 … n.

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ConfigurationError(f"a confidence lies between 0 and 1, not at {confidence}")
        reach = stats.norm.isf((1 - confidence) / 2) * self.deviations
        return np.clip(self.counts - reach, 0, self.n), np.clip(self.counts + reach, 0, self.n)

    def found(self) -> list[tuple[str, float, float]]:
        """The significant candidates with their counts and standard deviations, the most frequent first.

        Deviations are raised, since what is significant is so in part by luck: see `ldp.bias_aware`.
        """
        order = np.argsort(-self.counts, kind="stable")
        factor = selection_factor(int(np.count_nonzero(self.significant)), len(self.candidates))
        return [
            (self.candidates[each], float(self.counts[each]), factor * float(self.deviations[each]))
            for each in order
            if self.significant[each]
        ]


def decode(
    counts: BloomCounts,
    candidates: Sequence[str],
    *,
    error: float = 0.05,
    resamples: int = 10,
    rng: Randomness | None = None,
) -> Decoded:
    """Fits the candidates' filters to the bits' counts.

    Users with other texts set bits too, about evenly; a constant share of all bits, which `decode.R` has in its LASSO
    only, represents them in every fit.

    Args:
        counts: What `Rappor.estimate` returned.
        candidates: The texts that are looked for, each once.
        error: The probability that any candidate is called significant which nobody has.
        resamples: How often the fit is repeated with further noise, 5 or more, for the standard deviations.
        rng: For that noise; by default a fixed stream, so that the same counts give the same answer.

    Raises:
        ConfigurationError: An error or a number of resamples is out of its range.
        InputDataError: There is no candidate, one is there twice, or some cannot be distinguished.
    """
    if not 0 < error < 1:
        raise ConfigurationError(f"the allowed error lies between 0 and 1, not at {error}")
    if resamples < _LEAST_RESAMPLES:
        raise ConfigurationError(f"standard deviations need at least {_LEAST_RESAMPLES} resamples, not {resamples}")
    if not candidates or len(set(candidates)) < len(candidates):
        raise InputDataError("decoding needs one candidate or more, each named once")
    present, filters = np.flatnonzero(counts.sizes), counts.mechanism.filters
    design = filters.design(candidates)
    _check_distinct(design, candidates)
    sizes = np.repeat(counts.sizes[present], filters.bits)
    rows = (present[:, None] * filters.bits + np.arange(filters.bits)).ravel()
    fitted, deviations = fit(
        design.tocsr()[rows].tocsc(),
        counts.counts[present].ravel() / sizes,
        lambda shares: np.sqrt(counts.mechanism.drawn_variance(shares) / sizes),
        resamples=resamples,
        rng=Randomness.from_seed(0) if rng is None else rng,
    )
    own = len(candidates)
    p_values = stats.norm.sf(fitted[:own] / deviations)
    return Decoded(
        tuple(candidates),
        counts.n,
        fitted[:own] * counts.n,
        deviations * counts.n,
        p_values,
        p_values * own < error,
        min(float(fitted[own]) * counts.n * filters.bits / filters.hashes, float(counts.n)),
    )


def _check_distinct(design: Any, candidates: Sequence[str]) -> None:
    """Refuses candidates whose filters are equal in all cohorts; the LASSO would give one of them the other's users."""
    seen: dict[bytes, int] = {}
    for place, column in enumerate(np.split(design.indices, design.indptr[1:-1])):
        other = seen.setdefault(np.sort(column).tobytes(), place)
        if other != place:
            raise InputDataError(
                f"the candidates '{candidates[other]}' and '{candidates[place]}' set the same bits and cannot be "
                "distinguished; leave one out, or collect with more cohorts or longer filters"
            )


def fit(
    design: Any, shares: Floats, scales: Callable[[Floats], Floats], *, resamples: int, rng: Randomness
) -> tuple[Floats, Floats]:
    """Weighted least squares with coefficients that are not negative, after a selection where that is needed.

    Weights come from a first fit with weights for bits that are all as common. `decode.R` takes them from the very
    shares that are fitted; bits that are too high by chance then weigh less, and all coefficients become too low.

    The standard deviation is the larger one of the least squares' own, and of the coefficients when the whole fit is
    repeated with the noise added once more. `decode.R` has the latter alone, which is too small near zero, where the
    limit cuts the noise off.

    Args:
        design: Sparse, shape (rows, S): the bits that candidates set.
        shares: Shape (rows,): the bits' estimated shares.
        scales: The standard deviations of `shares` by the true shares.
        resamples: How often the fit is repeated.
        rng: For the noise of that.

    Returns:
        Coefficients of the S candidates and of the constant, shape (S + 1,), and standard deviations of the
        candidates', shape (S,).

    Raises:
        InputDataError: Candidates cannot be distinguished.
    """
    rows, own = design.shape
    columns = sparse.hstack([design, sparse.csc_array(np.ones((rows, 1)))]).tocsc()
    even = np.full(rows, np.clip(shares.mean(), 0, 1))
    first = _Weighted(columns, shares, scales(even))
    second = _Weighted(columns, shares, scales(np.clip(columns @ first.solve(), 0, 1)))
    fitted = second.solve()
    again = [second.solve(stats.norm.ppf((rng.uint64(rows) + 0.5) / 2.0**64)) for _ in range(resamples)]
    return fitted, np.maximum(second.model.deviations(), np.std(again, axis=0, ddof=1))[:own]


class _Weighted:
    """Rows divided by their standard deviations, so that each has noise of variance one."""

    def __init__(self, columns: Any, shares: Floats, scales: Floats) -> None:
        self._whitened, self._target = columns.multiply(1 / scales[:, None]).tocsc(), shares / scales
        self.model = _LeastSquares(self._whitened, _support(self._whitened, self._target))

    def solve(self, noise: Floats | None = None) -> Floats:
        """The coefficients, or what they would be with further noise on the rows."""
        if noise is None:
            return self.model.solve(self._target)
        target = self._target + noise
        support = _support(self._whitened, target)
        same = np.array_equal(support, self.model.support)
        return (self.model if same else _LeastSquares(self._whitened, support)).solve(target)


def _support(whitened: Any, target: Floats) -> NDArray[np.int64]:
    """The columns that least squares may use: all, or those that the LASSO selects; the constant, the last, always."""
    rows, columns = whitened.shape
    if columns - 1 <= _CROWDED * rows:
        return np.arange(columns)
    # Noise alone correlates with a column like a normal number times its length.
    penalties = stats.norm.isf(min(0.5, _FALSE_SHARE * rows / columns)) * _lengths(whitened)
    penalties[-1] = 0
    chosen = non_negative_lasso(whitened, target, penalties)
    chosen[-1] = np.inf
    size = min(int(_CROWDED * rows), np.count_nonzero(chosen))
    return np.sort(np.argsort(-chosen, kind="stable")[: max(size, 1)])


class _LeastSquares:
    """Least squares on some columns, by the Cholesky factor of their products."""

    def __init__(self, whitened: Any, support: NDArray[np.int64]) -> None:
        self.support = support
        self._whitened, self._part = whitened, whitened[:, support]
        products = (self._part.T @ self._part).toarray()
        try:
            self._root = linalg.cholesky(products, lower=True)
        except linalg.LinAlgError:
            raise _dependent() from None
        # What of each column is not explained by those before it.
        if np.min(np.square(np.diag(self._root)) / np.diag(products)) < _DEPENDENT:
            raise _dependent()

    def solve(self, target: Floats) -> Floats:
        """All columns' coefficients, none of them negative."""
        found = np.zeros(self._whitened.shape[1])
        reduced = linalg.solve_triangular(self._root, self._part.T @ target, lower=True)
        found[self.support] = optimize.nnls(self._root.T, reduced)[0]
        return found

    def deviations(self) -> Floats:
        """Of coefficients without the limit at zero; for a column that is left out, if it alone were let in."""
        spread = 1 / _lengths(self._whitened)
        inverse = linalg.solve_triangular(self._root, np.eye(len(self.support)), lower=True)
        spread[self.support] = np.sqrt(np.square(inverse).sum(axis=0))
        return spread


def _lengths(whitened: Any) -> Floats:
    """The columns' Euclidean norms."""
    lengths: Floats = np.sqrt(np.asarray(whitened.multiply(whitened).sum(axis=0)).ravel())
    return lengths


def _dependent() -> InputDataError:
    return InputDataError(
        "some candidates set the same bits as others together and cannot be distinguished; "
        "leave some out, or collect with more cohorts or longer filters"
    )
