"""How much a split gains about the class: information gain and gain ratio, in whole numbers.

All parties of a joint tree must choose alike on every machine, so gains are not floating-point numbers: they are
computed with 40 digits and rounded to 10⁻¹² bits a row, in which equal gains are equal.

Source: Quinlan, "Induction of Decision Trees", Machine Learning 1(1), 1986, sections 4 (gain) and 7 (gain ratio, among
splits of at least average gain); Quinlan, C4.5: Programs for Machine Learning, 1993, sections 2.2 and 2.4 (numbers are
split in two at a cut; at least two branches have a minimum of rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Criterion = Literal["gain", "gain-ratio"]
Histogram = NDArray[np.int64]
"""Shape (codes, classes): how many rows of a node have each."""

WHOLE: Final = -1  # the cut of a split into all values of a categorical attribute
_DIGITS: Final = 40  # behind the point, of n·log2 n
_UNITS: Final = 10**12  # a bit


class Split(NamedTuple):
    """How a node is divided.

    Attributes:
        attribute: Its number.
        cut: Rows with codes up to this one go left, the others right; `WHOLE` where each code has a branch of its own.
    """

    attribute: int
    cut: int


class Weighed(NamedTuple):
    """A split with what it gains, in units of 10⁻¹² bits a row.

    Attributes:
        split: The split.
        gain: Information about the class.
        information: Entropy of the branches.
    """

    split: Split
    gain: int
    information: int


class Offered(NamedTuple):
    """What is known of an attribute at a node.

    Attributes:
        attribute: Its number.
        first: The code that the histogram begins with.
        is_cut: Whether it is split in two at a cut; otherwise each code has a branch.
        histogram: Its codes by classes.
    """

    attribute: int
    first: int
    is_cut: bool
    histogram: Histogram


def best_split(offered: Iterable[Offered], criterion: Criterion, min_rows: int) -> Split | None:
    """The split that gains most, the first of several: in the order of the attributes, then of the cuts.

    Args:
        offered: The attributes that may be split by.
        criterion: `gain` as in ID3; `gain-ratio` as in C4.5, among attributes of at least average gain.
        min_rows: The least rows of at least two branches.

    Returns:
        None where no split gains anything.
    """
    best = [found for each in offered if (found := _best_of(each, min_rows)) is not None]
    if not best:
        return None
    if criterion == "gain-ratio":
        total = sum(each.gain for each in best)
        best = [each for each in best if each.gain * len(best) >= total]
    chosen = best[0]
    for each in best[1:]:
        better = (
            each.gain > chosen.gain
            if criterion == "gain"
            else each.gain * chosen.information > chosen.gain * each.information
        )
        chosen = each if better else chosen
    return chosen.split


def _best_of(offered: Offered, min_rows: int) -> Weighed | None:
    """The attribute's split of the largest gain."""
    best: Weighed | None = None
    histogram = offered.histogram
    cuts = range(len(histogram) - 1) if offered.is_cut else [WHOLE]
    below = np.cumsum(histogram, axis=0)
    for cut in cuts:
        branches = histogram if cut == WHOLE else np.stack([below[cut], below[-1] - below[cut]])
        rows = branches.tolist()
        if sum(sum(row) >= min_rows for row in rows) < 2:
            continue
        gain, information = weigh(rows)
        if gain > 0 and (best is None or gain > best.gain):
            place = cut if cut == WHOLE else offered.first + cut
            best = Weighed(Split(offered.attribute, place), gain, information)
    return best


def weigh(branches: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Gain and information of a split.

    Args:
        branches: By branch, by class, the number of rows; some rows in all.

    Returns:
        Units of 10⁻¹² bits a row.
    """
    classes = [sum(column) for column in zip(*branches, strict=True)]
    sizes = [sum(branch) for branch in branches]
    rows = sum(sizes)
    among = _n_log_n(rows) - sum(map(_n_log_n, sizes))
    before = _n_log_n(rows) - sum(map(_n_log_n, classes))
    after = sum(map(_n_log_n, sizes)) - sum(_n_log_n(count) for branch in branches for count in branch)
    return _a_row(before - after, rows), _a_row(among, rows)


@lru_cache(maxsize=1 << 17)
def _n_log_n(n: int) -> int:
    """n·log2 n in units of 10^−`_DIGITS`, correct to the last one on every machine: `Decimal.ln` rounds correctly."""
    if n < 2:
        return 0
    with localcontext(prec=_DIGITS + 30):
        return int((Decimal(n).ln() / Decimal(2).ln() * n).scaleb(_DIGITS).to_integral_value())


def _a_row(total: int, rows: int) -> int:
    whole: int = rows * 10**_DIGITS // _UNITS
    return (2 * total + whole) // (2 * whole)
