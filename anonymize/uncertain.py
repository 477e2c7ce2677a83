"""Records as distributions: each is published moved by normal noise, with the noise's density beside it.

Source: Aggarwal, "On unifying privacy and uncertain data models", ICDE 2008, as described in Aggarwal, "Data Mining",
2015, section 20.3.

A record X_i is published as Z_i = X_i + N(0, σ_i²·I), with the density N(Z_i, σ_i²·I). An attacker who knows X_i counts
how many records fit Z_i at least as well. Another record X_j does with probability Φ(−|X_i − X_j| / (2σ_i)), so that
the expected anonymity of X_i is 1 + Σ_{j ≠ i} Φ(−|X_i − X_j| / (2σ_i)). σ_i is the least for which that is k. Since
Φ(0) = ½, no noise gives more than 1 + (n − 1)/2.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from anonymize.clustering.space import Scaling, Space
from anonymize.release import Release, publish
from anonymize.sampling import standard_normal
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

SUFFIX: Final = "_sd"
"""What the name of the column with a column's standard deviations ends in."""

_BLOCK: Final = 1 << 20  # distances held at a time
_NEAREST: Final = 64  # neighbours looked at first, for each record that should hide another
_FAR: Final = 40.0  # a ratio of distance to noise whose density is 0 in doubles
_TOLERANCE: Final = 1e-13  # relative
_STEPS: Final = 200  # enough to halve any bracket of doubles to its end; some six are needed as a rule


def expected_anonymity(distances: ArrayLike, sigma: ArrayLike) -> Floats:
    """1 + Σ Φ(−d / (2σ)).

    Args:
        distances: Shape (n, m): of each record from the others.
        sigma: Shape (n,), of each record. Without noise (0) only records at distance 0 count, one half each.

    Returns:
        Shape (n,).
    """
    d, s = np.asarray(distances, np.float64), np.asarray(sigma, np.float64)[..., None]
    far = np.where(d > 0, -np.inf, 0.0)
    scores = np.divide(-d, 2 * s, out=far, where=s > 0)
    anonymity: Floats = 1 + ndtr(scores).sum(axis=-1)
    return anonymity


def noise_for_anonymity(points: Floats, k: float) -> Floats:
    """The least σ of each point with which its expected anonymity is k, in O(n²) operations.

    Args:
        points: Shape (n, d).
        k: Expected anonymity, at least 1.

    Returns:
        Shape (n,); 0 where equal points alone give k.

    Raises:
        ConfigurationError: k is below 1, or no noise reaches it: it must be below 1 + (n − 1)/2.
    """
    n = len(points)
    if not 1 <= k < 1 + (n - 1) / 2:
        raise ConfigurationError(
            f"k is {k:g}, but the expected anonymity of {n} records lies from 1 to below {1 + (n - 1) / 2:g}; "
            "choose a k within."
        )
    sigmas = np.empty(n)
    rows = max(_BLOCK // n, 1)
    for start in range(0, n, rows):
        block = np.arange(start, min(start + rows, n))
        distances = cdist(points[block], points)
        distances[np.arange(len(block)), block] = np.inf  # not its own neighbour
        sigmas[block] = _solved(distances, k)
    return sigmas


def _solved(distances: Floats, k: float) -> Floats:
    """The noise of records by their distances from all others, shape (b, n), infinite from themselves.

    The noise that hides a record among its nearest neighbours alone is little more than the noise sought, and soon
    found.
    """
    others = distances.shape[1] - 1
    nearest = min(_NEAREST * math.ceil(k), others)
    near = np.partition(distances, nearest - 1, axis=1)[:, :nearest]
    sigmas = _root(near, k, near.mean(axis=1))
    return sigmas if nearest == others else _root(distances, k, sigmas)


def _root(distances: Floats, k: float, start: Floats) -> Floats:
    """The least noise with which the expected anonymity is k: Newton's steps in log σ, or halves where they go astray.

    Args:
        distances: Shape (b, m), 1 + m/2 > k.
        k: Expected anonymity.
        start: Shape (b,), a first guess.
    """
    b = len(distances)
    sigmas = np.where(start > 0, start, 1.0)
    low, high = np.zeros(b), np.full(b, np.inf)
    open_ = np.flatnonzero(expected_anonymity(distances, np.zeros(b)) < k)
    sigmas[np.setdiff1d(np.arange(b), open_)] = 0.0
    for _ in range(_STEPS):
        if not len(open_):
            break
        sigma = sigmas[open_]
        ratios = distances[open_] / (2 * sigma[:, None])
        error = 1 + ndtr(-ratios).sum(axis=1) - k
        low[open_] = np.where(error < 0, sigma, low[open_])
        high[open_] = np.where(error >= 0, sigma, high[open_])
        weights = np.where(ratios < _FAR, ratios, 0.0)
        slope = (weights * np.exp(-np.square(weights) / 2)).sum(axis=1) / math.sqrt(2 * math.pi)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            step = sigma * np.exp(-error / slope)
            inside = (step > low[open_]) & (step < high[open_])
            middle = np.where(np.isinf(high[open_]), 2 * low[open_], (low[open_] + high[open_]) / 2)
        sigmas[open_] = np.where(inside, step, middle)
        done = (np.abs(error) <= _TOLERANCE * k) | (high[open_] - low[open_] <= _TOLERANCE * sigma)
        sigmas[open_[done]] = sigma[done]
        open_ = open_[~done]
    return sigmas


def publish_as_distributions(table: Table, k: float, *, rng: Randomness, scaling: Scaling = "deviation") -> Release:
    """Publishes noisy quasi-identifiers, each with its standard deviation in a column of its own.

    Args:
        table: Its quasi-identifiers are numeric or dates; all other columns are published as they are.
        k: Expected anonymity of each record.
        rng: Where the noise comes from.
        scaling: The unit of each column in distances and noise, see `Space`.

    Returns:
        Rows in the input's order. Column "x" is Z, "x_sd" its σ in the unit of x. The details hold k, the units, σ of
        each row, and as `added` the names of the new columns; the statistics the mean σ and the greatest.

    Raises:
        ConfigurationError: k is out of reach, a quasi-identifier is no number, or a name with "_sd" is taken.
    """
    columns = table.quasi_identifiers
    if not columns:
        raise ConfigurationError("The table has no quasi-identifiers, so there is nothing to add noise to; name some.")
    for column in columns:
        if column.kind not in ("numeric", "date"):
            raise ConfigurationError(
                f'Column "{column.name}" is of kind {column.kind}, and noise needs numbers or dates.'
            )
        if column.name + SUFFIX in table.columns:
            raise ConfigurationError(f'Column "{column.name}{SUFFIX}" is in the table already; rename it.')
    space = Space.of(columns, scaling)
    sigmas = noise_for_anonymity(space.points, k)
    moved = space.points + sigmas[:, None] * standard_normal(space.points.size, rng).reshape(space.points.shape)
    moved = np.where(np.ptp(space.points, axis=0) == 0, space.points, moved)
    rows = np.arange(table.n_rows)
    published = publish(table, space.cells(moved), rows)
    for column, unit in zip(columns, space.units, strict=True):
        published = published.append_column(column.name + SUFFIX, pa.array(sigmas * unit))
    return Release(
        algorithm="distributions",
        table=published,
        rows=rows,
        classes=None,
        suppressed=np.empty(0, np.int64),
        statistics={"mean_sigma": float(sigmas.mean()), "largest_sigma": float(sigmas.max())},
        details={
            "k": k,
            "scaling": scaling,
            "units": space.units,
            "sigmas": sigmas,
            "added": tuple(column.name + SUFFIX for column in columns),
        },
    )
