"""t-closeness (Li et al. 2007; Aggarwal, Data Mining, definition 20.3.5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import ClosenessClaim
from anonymize.columns import Column
from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.model import Claim, Protection, SingleColumnModel
from anonymize.models.rationals import TOLERANCE, Rational, exact, written
from anonymize.models.reference_distribution import Distance, ReferenceDistribution, rank_gaps, value_gaps
from anonymize.tables import Table
from link.errors import ConfigurationError

DistanceName = Literal["equal", "variational", "kl", "ordered", "hierarchical"]
Ground = Literal["rank", "value"]


@dataclass(frozen=True, eq=False)
class _Reference:
    """What the model knows of the input table: Q, and the ground distance."""

    distribution: ReferenceDistribution
    gaps: NDArray[np.int64]
    leaves: NDArray[np.int32]


@dataclass(frozen=True)
class TCloseness(SingleColumnModel):
    """In every class the sensitive values are distributed as in the whole input table, up to a distance t (eq. 20.12).

    The distances:

    * `equal`: the earth mover's where all values are equally far apart; the same as `variational`, ½ Σ |p − q|.
    * `kl`: Kullback and Leibler's, Σ p ln(p / q), in nats; it may exceed 1.
    * `ordered`: the earth mover's between values in order, neighbours 1 / (m − 1) apart (`ground = "rank"`) or as far
      as their numbers differ, as a share of the range (`ground = "value"`). m counts the values of the whole table.
    * `hierarchical`: the earth mover's where values are as far apart as their lowest common ancestor is high.

    All but `kl` are compared as whole numbers, t being the decimal that is written.

    Attributes:
        t: At least 0.
        column: The sensitive column.
        distance: See above.
        ground: Of `ordered`.
        hierarchy: Of `hierarchical`; it has the column's values as leaves.
        reference: Q; set by `fitted`.
    """

    t: Rational
    column: str
    distance: DistanceName = "equal"
    ground: Ground = "rank"
    hierarchy: Hierarchy | None = field(default=None, repr=False)
    reference: _Reference | None = field(default=None, repr=False, compare=False, kw_only=True)
    name: ClassVar[str] = "t-closeness"
    protection: ClassVar[Protection] = Protection(
        "What a class reveals about {column} is within {t} ({distance}) of what the whole table reveals.",
        "What the whole table reveals of everybody stays revealed; t bounds a mean, not each value.",
    )

    def __post_init__(self) -> None:
        if exact(self.t, "t") < 0:
            raise ConfigurationError(f"t is {self.t}; it must be at least 0.")
        if self.distance not in get_args(DistanceName):
            names = ", ".join(get_args(DistanceName))
            raise ConfigurationError(f'The distance of t-closeness is "{self.distance}"; it must be one of {names}.')
        if self.ground not in get_args(Ground):
            raise ConfigurationError(f'The ground of t-closeness is "{self.ground}"; it must be rank or value.')
        if (self.distance == "hierarchical") != (self.hierarchy is not None):
            raise ConfigurationError(
                f'The distance of t-closeness is "{self.distance}"; a hierarchy of column "{self.column}" belongs to '
                "the distance hierarchical, and only to it."
            )

    @property
    def least_size(self) -> int:
        """Nothing follows from t without a look at Q."""
        return 1

    def fitted(self, table: Table) -> Self:
        """The model with Q of an input table.

        Raises:
            ConfigurationError: The column is not there or not sensitive, or its values are in no order for `ordered`.
            InputDataError: The hierarchy lacks one of its values.
        """
        column = table.sensitive_column(self.column)
        return self.with_reference(column, column.counts)

    def with_reference(self, column: Column, counts: NDArray[np.int64]) -> Self:
        """The model with Q as it is given, as a verifier has it from a certificate.

        Args:
            column: The sensitive column with the domain of the whole input table.
            counts: Shape (m,): how many records of the input table have each value of the domain.

        Raises:
            ConfigurationError: The values are in no order for `ordered`.
            InputDataError: The hierarchy lacks one of the values.
        """
        gaps = rank_gaps(column.size)
        if self.distance == "ordered":
            numbers = column.numbers  # refuses values without an order
            gaps = value_gaps(numbers) if self.ground == "value" else gaps
        leaves = self.hierarchy.align(column) if self.hierarchy else np.empty(0, np.int32)
        return replace(self, reference=_Reference(ReferenceDistribution(counts), gaps, leaves))

    def distances(self, classes: Histograms) -> NDArray[np.float64]:
        """Shape (c,): how far each class is from the whole table."""
        found = self._measured(classes)
        return found.values if isinstance(found, Distance) else found

    def claim(self, table: Table | None) -> Claim:
        """See `Model`: of the input's values it has their order, or their hierarchy."""
        if table is None:
            raise ConfigurationError("t-closeness to a table is claimed, but there is no table.")
        column = table.sensitive_column(self.column)
        order, positions, paths = None, None, None
        if self.distance == "ordered":
            order = list(column.texts)
            positions = column.numbers.tolist() if self.ground == "value" else None
        if self.hierarchy is not None:
            hierarchy, leaves = self.hierarchy, self.hierarchy.align(column)
            paths = {
                text: [hierarchy.label(level, int(leaf)) for level in range(hierarchy.height + 1)]
                for text, leaf in zip(column.texts, leaves, strict=True)
            }
        claimed = ClosenessClaim(
            distance=self.distance,
            value=written(self.t),
            column=self.column,
            order=order,
            positions=positions,
            paths=paths,
        )
        return "t", claimed

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes are close enough."""
        found, t = self._measured(classes), exact(self.t, "t")
        return found.at_most(t) if isinstance(found, Distance) else np.asarray(found <= float(t) + TOLERANCE, bool)

    def _measured(self, classes: Histograms) -> Distance | NDArray[np.float64]:
        if self.reference is None:
            raise ConfigurationError(
                "t-closeness must be fitted to the input table before classes are compared with it."
            )
        counts, sizes = classes.sensitive[self.column], classes.sizes
        distribution = self.reference.distribution
        if self.distance == "kl":
            return distribution.kullback_leibler(counts, sizes)
        if self.distance == "ordered":
            return distribution.ordered(counts, sizes, self.reference.gaps)
        if self.hierarchy is not None:
            return distribution.hierarchical(counts, sizes, self.hierarchy, self.reference.leaves)
        return distribution.variational(counts, sizes)
