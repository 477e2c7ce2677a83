"""p-sensitive k-anonymity (Truta and Vinay 2006; Campan et al. 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import SensitivityClaim
from anonymize.grouping import Histograms
from anonymize.models.diversity import too_few_values
from anonymize.models.model import Claim, ClassModel, Protection
from anonymize.models.rationals import whole
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class PSensitive(ClassModel):
    """Every class has at least p distinct values of each sensitive column listed; k is a model of its own.

    Attributes:
        p: At least 1.
        columns: One sensitive column or several.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> PSensitive(2, ("illness",)).satisfied(classes)
        array([ True, False])
    """

    p: int
    columns: tuple[str, ...]
    name: ClassVar[str] = "p-sensitive k-anonymity"
    protection: ClassVar[Protection] = Protection(
        "Each class has at least {p} values of every one of: {columns}.",
        "One of them may be by far the most likely.",
    )
    monotone_with_suppression: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.p, "p")
        given: Sequence[str] = self.columns
        object.__setattr__(self, "columns", (given,) if isinstance(given, str) else tuple(given))
        if not self.columns:
            raise ConfigurationError("p-sensitive k-anonymity needs a sensitive column.")

    @property
    def column(self) -> str | None:
        """The column, if there is one only."""
        return self.columns[0] if len(self.columns) == 1 else None

    @property
    def least_size(self) -> int:
        """As many records as values."""
        return self.p

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "p", SensitivityClaim(value=self.p, columns=list(self.columns))

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes have enough values of every column."""
        enough = [np.count_nonzero(classes.sensitive[name], axis=1) >= self.p for name in self.columns]
        return np.asarray(np.logical_and.reduce(enough), bool)

    def infeasible(self, table: Table, suppressible: int) -> str | None:  # noqa: ARG002 - certain whatever is left out
        """Certain where the whole table has fewer than p values of a column."""
        reasons = (too_few_values(table, name, self.p, "p") for name in self.columns)
        return next((reason for reason in reasons if reason), None)


def max_groups(counts: NDArray[np.int64], p: int, k: int) -> int:
    """The most classes that a p-sensitive k-anonymous table can have.

    Each class needs k records, and i values other than the p − i most frequent ones, for each i: so there are at most
    min(⌊n / k⌋, min over i = 1 … p of ⌊(n − cf_{p−i}) / i⌋) classes, cf_j being the sum of the j largest counts. With
    k = p that many can be reached.

    Args:
        counts: Shape (m,): records with each sensitive value.
        p: Distinct values in each class.
        k: Records in each class.

    Returns:
        The bound; 0 where there are fewer than p values.
    """
    ordered = np.sort(counts[counts > 0])[::-1]
    if len(ordered) < p:
        return 0
    n = int(ordered.sum())
    cumulated: list[int] = [0, *np.cumsum(ordered).tolist()]
    return min(n // k, *((n - cumulated[p - i]) // i for i in range(1, p + 1)))
