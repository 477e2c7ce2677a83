"""(α, k)-anonymity (Wong et al. 2006)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import ShareClaim
from anonymize.grouping import Histograms
from anonymize.models.model import Claim, Protection, SingleColumnModel
from anonymize.models.rationals import Rational, at_most, exact, written
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class AlphaK(SingleColumnModel):
    """No sensitive value has more than the share α of any class; k is a model of its own.

    The comparison is exact: α is the decimal that is written.

    Attributes:
        alpha: Above 0, at most 1.
        column: The sensitive column.
        values: The sensitive values that are meant, as text; all if not given.
        places: Of `values` in the domain; set by `fitted`.
    """

    alpha: Rational
    column: str
    values: tuple[str, ...] | None = None
    places: tuple[int, ...] | None = field(default=None, repr=False, compare=False, kw_only=True)
    name: ClassVar[str] = "(alpha, k)-anonymity"
    protection: ClassVar[Protection] = Protection(
        "No value of {column} has more than the share {alpha} of a class.",
        "A chance of up to that share is accepted.",
    )

    def __post_init__(self) -> None:
        if not 0 < exact(self.alpha, "alpha") <= 1:
            raise ConfigurationError(f"alpha is {self.alpha}; it must be above 0 and at most 1.")
        given: Sequence[str] | None = self.values
        object.__setattr__(self, "values", None if given is None else tuple(given))

    @property
    def least_size(self) -> int:
        """One record has the share 1 / N of its class; a class may lack the values that are meant."""
        return 1 if self.values is not None else math.ceil(1 / exact(self.alpha, "alpha"))

    def fitted(self, table: Table) -> Self:
        """The model with the places of its values.

        Raises:
            ConfigurationError: The column is not there or not sensitive, or lacks one of the values.
        """
        column = table.sensitive_column(self.column)
        if self.values is None:
            return self
        lacking = [value for value in self.values if value not in column.texts]
        if lacking:
            raise ConfigurationError(f'Column "{self.column}" has no value "{lacking[0]}", for which alpha is given.')
        return replace(self, places=tuple(column.texts.index(value) for value in self.values))

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        values = None if self.values is None else list(self.values)
        return "alpha", ShareClaim(value=written(self.alpha), column=self.column, values=values)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): in which classes no value is too frequent."""
        counts = classes.sensitive[self.column]
        if self.values is not None:
            if self.places is None:
                raise ConfigurationError("(alpha, k)-anonymity of listed values must be fitted to a table first.")
            counts = counts[:, self.places]
        return at_most(counts.max(axis=1, initial=0), exact(self.alpha, "alpha"), classes.sizes)
