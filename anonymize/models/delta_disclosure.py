"""δ-disclosure privacy (Brickell and Shmatikov 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import DisclosureClaim
from anonymize.grouping import Histograms
from anonymize.models.model import Claim, Protection
from anonymize.models.rationals import TOLERANCE, Rational, exact, written
from anonymize.models.reference_model import ReferenceModel
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class DeltaDisclosure(ReferenceModel):
    """The share of each value that a class holds is within a factor e^δ of its share q in the input table.

    That is, |ln(p / q)| < δ wherever p > 0, strictly and beyond 1e-9. A value that a class lacks is no violation, so
    the union of good classes need not be good: algorithms cannot prune by this model.

    Attributes:
        delta: Above 0.
        column: The sensitive column.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> DeltaDisclosure(2, "illness").fitted(table).satisfied(classes)
        array([ True,  True])
    """

    delta: Rational
    column: str
    name: ClassVar[str] = "delta-disclosure privacy"
    protection: ClassVar[Protection] = Protection(
        "Each value of {column} that a class holds is as likely there as in the whole table, up to a factor e^{delta}.",
        "A value may be absent from a class.",
    )
    monotone: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if exact(self.delta, "delta") <= 0:
            raise ConfigurationError(f"delta is {self.delta}; it must be above 0.")

    def disclosures(self, classes: Histograms) -> NDArray[np.float64]:
        """Shape (c,): the largest |ln(p / q)| of each class; infinite where a value is not in the input table."""
        reference, counts, sizes = self._compared(classes)
        held = counts > 0
        shares = np.where(held, counts, 1) / np.maximum(sizes, 1)[:, None]
        with np.errstate(divide="ignore"):
            logs = np.abs(np.log(shares) - np.log(reference.counts / reference.total))
        return np.asarray(np.where(held, logs, 0.0).max(axis=1, initial=0.0))

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "delta", DisclosureClaim(value=written(self.delta), column=self.column)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): in which classes no share is too far off."""
        return np.asarray(self.disclosures(classes) < float(exact(self.delta, "delta")) - TOLERANCE, bool)
