"""Information loss of generalised tables, in the definitions that papers and tools compare by.

n input rows, d quasi-identifiers, s suppressed rows, classes E of |E| published rows each. A suppressed cell has lost
everything, so it counts 1 wherever a cell's loss lies in [0, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymize.utility.exact_mean import exact_mean
from link.errors import ConfigurationError


def precision(levels: ArrayLike, heights: Sequence[int], suppressed: int = 0) -> float:
    """Prec of Sweeney (2002): 1 less the mean height to which cells were lifted, as a share of their hierarchy.

    Args:
        levels: Shape (rows, d): the level of each published row's cells.
        heights: The height h of each quasi-identifier's hierarchy; a hierarchy of height 0 cannot lose anything.
        suppressed: Rows that are not published; each of their cells counts 1.

    Returns:
        From 0 (nothing is left) to 1 (as it was).

    Raises:
        ConfigurationError: A level is not between 0 and its height, or there is nothing to measure.
    """
    tops = np.asarray(heights, dtype=np.int64)
    lifted = np.asarray(levels, dtype=np.int64).reshape(-1, tops.size)
    rows = lifted.shape[0] + suppressed
    if rows * tops.size == 0:
        raise ConfigurationError("Precision is a mean over cells, and there are none.")
    if lifted.size and ((lifted < 0) | (lifted > tops)).any():
        raise ConfigurationError("A level of generalisation lies above its hierarchy or below 0.")
    lost = float((lifted / np.maximum(tops, 1)).sum()) + suppressed * tops.size
    return 1.0 - lost / (rows * tops.size)


def discernibility(sizes: ArrayLike, suppressed: int = 0) -> int:
    """DM of Bayardo and Agrawal (2005): for each row, from how many others it cannot be distinguished.

    Args:
        sizes: Published rows of each class.
        suppressed: Rows s that are not published; each counts n = Σ|E| + s.

    Returns:
        Σ|E|² + s·n, exact.
    """
    counts = np.asarray(sizes, dtype=np.int64)
    n = int(counts.sum()) + suppressed
    return sum(int(size) ** 2 for size in counts) + suppressed * n


def average_class_size(sizes: ArrayLike, k: int) -> float:
    """C_avg of LeFevre et al. (2006): published rows by classes by k. 1 is the best that k-anonymity allows.

    Raises:
        ConfigurationError: k is below 1, or there is no class.
    """
    if k < 1:
        raise ConfigurationError(f"k is at least 1, not {k}.")
    return average_equivalence_class_size(sizes) / k


def average_equivalence_class_size(sizes: ArrayLike) -> float:
    """AECS as tools print it: published rows by classes, not divided by k; suppressed rows are no class.

    Raises:
        ConfigurationError: There is no class.
    """
    counts = np.asarray(sizes, dtype=np.int64)
    if counts.size == 0:
        raise ConfigurationError("A mean class size needs a class, and every row is suppressed.")
    return int(counts.sum()) / counts.size


def interval_loss(low: ArrayLike, high: ArrayLike, span: float) -> NDArray[np.float64]:
    """NCP of numeric cells (Xu et al. 2006): (high − low)/span, where span is the column's largest − smallest value.

    A column of one value has nothing to lose: 0.
    """
    width = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
    return width / span if span > 0 else np.zeros_like(width)


def leaf_loss(leaves: ArrayLike, total: int, *, form: Literal["iyengar", "xu"] = "iyengar") -> NDArray[np.float64]:
    """NCP of cells that are nodes of a hierarchy.

    Args:
        leaves: Leaves below each cell's node, from 1.
        total: Leaves of the hierarchy (of its file, not only those that the table holds).
        form: "iyengar" (2002): (leaves − 1)/(total − 1); "xu" (2006): leaves/total, and 0 for a leaf.

    Returns:
        The shape of `leaves`, in [0, 1].

    Raises:
        ConfigurationError: A number of leaves is not between 1 and `total`.
    """
    below = np.asarray(leaves, dtype=np.float64)
    if below.size and ((below < 1) | (below > total)).any():
        raise ConfigurationError(f"A node of a hierarchy has between 1 leaf and all of its {total} leaves below it.")
    if form == "iyengar":
        return (below - 1) / max(total - 1, 1)
    return np.where(below > 1, below / total, 0.0)


def gcp(cell_loss: ArrayLike) -> float:
    """GCP of Ghinita et al. (2007): the mean NCP over all cells, rounded once.

    Args:
        cell_loss: Shape (n, d): NCP of every input row's quasi-identifier cells, 1 where the row is suppressed.

    Raises:
        ConfigurationError: There are no cells.
    """
    cells = np.asarray(cell_loss, dtype=np.float64)
    if cells.size == 0:
        raise ConfigurationError("GCP is a mean over cells, and there are none.")
    return exact_mean(cells)


def granularity(leaves: ArrayLike, totals: Sequence[int], suppressed: int = 0) -> float:
    """Mean share of its domain that a cell covers: leaves/total, so 1/total for a cell as it was.

    Args:
        leaves: Shape (rows, d): domain values that each published cell covers.
        totals: Domain values of each quasi-identifier.
        suppressed: Rows that are not published; their cells cover everything.

    Raises:
        ConfigurationError: There are no cells.
    """
    sizes = np.asarray(totals, dtype=np.float64)
    covered = np.asarray(leaves, dtype=np.float64).reshape(-1, sizes.size)
    cells = (covered.shape[0] + suppressed) * sizes.size
    if cells == 0:
        raise ConfigurationError("Granularity is a mean over cells, and there are none.")
    return (float((covered / sizes).sum()) + suppressed * sizes.size) / cells


def non_uniform_entropy(codes: ArrayLike, groups: ArrayLike, suppressed: ArrayLike | None = None) -> float:
    """Bits that a column has lost by non-uniform entropy (De Waal and Willenborg 1999; Gionis and Tassa 2009).

    Each cell loses −log2 of the probability of its value, given what is published of it.

    Args:
        codes: Shape (n,): the original values as numbers from 0.
        groups: Shape (n,): the published values as numbers from 0; rows of equal number publish the same value. The
            numbers of suppressed rows do not matter.
        suppressed: Shape (n,), boolean: rows of which nothing is published, so that the whole column is left to guess
            from; None where there are none.

    Returns:
        Σ −log2(count(value and published value)/count(published value)), which is 0 where nothing is merged.

    Raises:
        ConfigurationError: The arrays have different lengths.
    """
    values, merged = np.asarray(codes, dtype=np.int64), np.asarray(groups, dtype=np.int64)
    left_out = np.zeros(values.shape, np.bool_) if suppressed is None else np.asarray(suppressed, dtype=np.bool_)
    if values.shape != merged.shape or values.shape != left_out.shape:
        raise ConfigurationError(f"{values.size} original values and {merged.size} published ones are no pairs.")
    lost = np.log2(values.size / np.bincount(values)[values[left_out]]).sum() if left_out.any() else 0.0
    values, merged = values[~left_out], merged[~left_out]
    if values.size:
        pairs = values * (int(merged.max()) + 1) + merged
        _, pair, within = np.unique(pairs, return_inverse=True, return_counts=True)
        lost += np.log2(np.bincount(merged)[merged] / within[pair.reshape(-1)]).sum()
    return float(lost)
