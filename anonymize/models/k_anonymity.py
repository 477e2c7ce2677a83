"""k-anonymity (Samarati 2001; Aggarwal, Data Mining, definition 20.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.grouping import Histograms
from anonymize.models.model import Claim, ClassModel, Protection
from anonymize.models.rationals import whole
from anonymize.tables import Table


@dataclass(frozen=True)
class KAnonymity(ClassModel):
    """Every class has at least k records: nobody is distinguished from k − 1 others by quasi-identifiers.

    Attributes:
        k: At least 1.
    """

    k: int
    name: ClassVar[str] = "k-anonymity"
    protection: ClassVar[Protection] = Protection(
        "Anyone who knows a person's quasi-identifiers finds at least {k} rows that could be theirs.",
        "If these rows agree in a sensitive value, it is known all the same.",
    )
    column: ClassVar[None] = None
    monotone_with_suppression: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.k, "k")

    @property
    def columns(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def least_size(self) -> int:
        """It is k."""
        return self.k

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "k", self.k

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes are large enough."""
        return classes.sizes >= self.k

    def infeasible(self, table: Table, suppressible: int) -> str | None:  # noqa: ARG002 - certain whatever is left out
        """Certain where there are fewer than k records."""
        if table.n_rows >= self.k:
            return None
        return f"k = {self.k} cannot be met: the table has {table.n_rows} records only."
