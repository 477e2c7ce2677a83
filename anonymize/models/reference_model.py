"""Models that compare each class with the sensitive values of the whole input table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from anonymize.grouping import Histograms
from anonymize.models.model import SingleColumnModel
from anonymize.models.reference_distribution import ReferenceDistribution
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class ReferenceModel(SingleColumnModel):
    """A model on one sensitive column that must be fitted to the input table.

    Attributes:
        reference: Q; set by `fitted`.
    """

    reference: ReferenceDistribution | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def least_size(self) -> int:
        """Nothing follows from the parameter without a look at Q."""
        return 1

    def fitted(self, table: Table) -> Self:
        """The model with Q of an input table.

        Raises:
            ConfigurationError: The column is not there or not sensitive.
        """
        return self.with_reference(table.sensitive_column(self.column).counts)

    def with_reference(self, counts: NDArray[np.int64]) -> Self:
        """The model with Q as it is given, shape (m,): how many records of the input table have each value."""
        return replace(self, reference=ReferenceDistribution(counts))

    def _compared(self, classes: Histograms) -> tuple[ReferenceDistribution, NDArray[np.int64], NDArray[np.int64]]:
        """Q, the classes' histograms and their sizes."""
        if self.reference is None:
            raise ConfigurationError(
                f"{self.name} must be fitted to the input table before classes are compared with it."
            )
        return self.reference, classes.sensitive[self.column], classes.sizes
