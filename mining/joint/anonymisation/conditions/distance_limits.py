"""t-closeness as a comparison of a weighted sum of absolute values of shared counts.

The deviation of a value s in class c is e_s = M·n_cs − N_c·m_s, where m_s of all M rows have s. For a set S of values
e_S is the sum over it. All distances but Kullback and Leibler's are Σ_S w_S·|e_S| / (u·M·N_c) for public sets, weights
and u, and they are at most 1:

    equal:              each value, w = 1; u = 2
    ordered:            all values up to the i-th, w = from there to the next; u = from the first to the last
    hierarchical:       the values below each node under the top, w = 1; u = 2·height. A node at level l moves
                        l·min(S, L), where its children have S too much and L too little, which is
                        l·½·(Σ |e_child| − |e_node|): over all levels ½·|e| of each node but the top is left

    1. [e_S ≥ 0] is compared, and the negative e_S are selected: |e_S| = e_S − 2·[e_S < 0]·e_S
    2. Σ_S w_S·|e_S| ≤ t·u·M·N_c is compared, in whole numbers

Rounds:     those of two comparisons and a selection.
Leakage:    none but sizes; m_s is opened before.
Source:     Li, Li and Venkatasubramanian, "t-Closeness", ICDE 2007, section 5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import TCloseness
from anonymize.models.rationals import exact
from anonymize.models.reference_distribution import rank_gaps, value_gaps
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import select
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.two_party import TwoParty
from link.errors import ComineError, ConfigurationError, InputDataError
from link.session import Session
from mining.joint.anonymisation.conditions.bits import joined
from mining.joint.anonymisation.conditions.value_counts import ValueCounts, constant_bits, exact_width, parted
from mining.joint.anonymisation.parameters import Carried

Values = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DistanceLimit:
    """A largest distance of the values of a class from those of all rows.

    Attributes:
        totals: m_s, rows of all parties with each value, shape (values,).
        weights: By set of values w, above 0.
        unit: u.
        t: At least 0.
    """

    totals: NDArray[np.int64]
    weights: Mapping[Values, int]
    unit: int
    t: Fraction

    def __post_init__(self) -> None:
        exact_width(self._largest)

    async def bits(self, session: Session, parties: TwoParty, counts: ValueCounts) -> XorShare:
        """See `ClassTest`."""
        if self.t >= 1 or not self.weights:
            return constant_bits(parties, counts.classes, met=True)
        apart = joined([self._deviation(counts, values) for values in self.weights])
        above = await at_least(session.lane("signs"), parties, apart, 0, exact_width(self._n_rows * self._n_rows))
        negative = await select(session.lane("negative"), parties, ~above, apart)
        limit = self._limit
        slack = counts.sizes.times_public(limit.numerator)
        absolute = parted(apart - negative.times_public(2), counts.classes)
        for weight, each in zip(self.weights.values(), absolute, strict=True):
            slack = slack - each.times_public(weight * limit.denominator)
        return await at_least(session.lane("distance"), parties, slack, 0, exact_width(self._largest))

    @property
    def _n_rows(self) -> int:
        return int(self.totals.sum())

    @property
    def _limit(self) -> Fraction:
        """What the weighted sum is at most, for each row of a class."""
        return self.t * self.unit * self._n_rows

    @property
    def _largest(self) -> int:
        """What neither side of the last comparison exceeds if t is at most 1."""
        return self._limit.denominator * self.unit * self._n_rows * self._n_rows

    def _deviation(self, counts: ValueCounts, values: Values) -> AdditiveShare:
        of_all = int(self.totals[list(values)].sum())
        return counts.of(*values).times_public(self._n_rows) - counts.sizes.times_public(of_all)


def distance_limit(model: TCloseness, column: Carried, totals: NDArray[np.int64]) -> DistanceLimit:
    """The test of a distance other than `kl`.

    Args:
        model: Not fitted to a table.
        column: Whose values it looks at; they are named.
        totals: Rows of all parties with each of them, shape (values,).

    Raises:
        ConfigurationError: The values have no order, for the distance `ordered`; the hierarchy lacks one; or there are
            too many rows and digits.
    """
    t = exact(model.t, "t")
    present = np.flatnonzero(totals)
    if model.distance == "ordered":
        return DistanceLimit(totals, *_ordered(model, column, present), t)
    if model.hierarchy is not None:
        return DistanceLimit(totals, *_hierarchical(model.hierarchy, column, present), t)
    return DistanceLimit(totals, {(value,): 1 for value in present.tolist()} if len(present) > 1 else {}, 2, t)


def _ordered(model: TCloseness, column: Carried, present: NDArray[np.int64]) -> tuple[dict[Values, int], int]:
    """All values up to each place of the domain, but the last."""
    domain = _domain(column, present)
    if not domain.is_ordered:
        raise ConfigurationError(
            f"{model} needs an order, and values of the kind {column.kind} have none; declare '{column.name}' numeric, "
            "ordinal or date"
        )
    gaps = (value_gaps(domain.numbers) if model.ground == "value" else rank_gaps(domain.size)).tolist()
    found, below = defaultdict[Values, int](int), Values()
    for place, gap in enumerate(gaps):
        below = (*below, *present[domain.codes == place].tolist())
        if 0 < len(below) < len(present):
            found[below] += gap
    return dict(found), max(sum(gaps), 1)


def _hierarchical(hierarchy: Hierarchy, column: Carried, present: NDArray[np.int64]) -> tuple[dict[Values, int], int]:
    """The values below each node under the top."""
    domain = _domain(column, present)
    try:
        leaves = hierarchy.align(domain)[domain.codes]
    except InputDataError:
        raise ConfigurationError(
            f"the hierarchy of '{column.name}', by which t-closeness measures, lacks values that occur; add a row for "
            "each that the job names"
        ) from None
    found = defaultdict[Values, int](int)
    for labels in hierarchy.maps[:-1]:
        for label in np.unique(labels[leaves]).tolist():
            below = tuple(present[labels[leaves] == label].tolist())
            if len(below) < len(present):
                found[below] += 1
    return dict(found), 2 * max(hierarchy.height, 1)


def _domain(column: Carried, present: NDArray[np.int64]) -> Column:
    """The values that occur as a column of the whole table has them: in the order of its kind, ordinal ones all.

    Its codes are those of the values that occur.
    """
    assert column.values is not None
    cells = pa.chunked_array([pa.array([column.values[place] for place in present.tolist()], pa.string())])
    try:
        return Column.of(column.name, cells, column.kind, column.values if column.kind == "ordinal" else ())
    except ComineError:
        raise ConfigurationError(
            f"the job's values of '{column.name}' are not all of the kind {column.kind}; correct them or the kind"
        ) from None
