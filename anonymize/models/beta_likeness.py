"""Basic and enhanced β-likeness (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import LikenessClaim
from anonymize.grouping import Histograms
from anonymize.models.model import Claim, Protection
from anonymize.models.rationals import TOLERANCE, Rational, at_most, exact, written
from anonymize.models.reference_model import ReferenceModel
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class BetaLikeness(ReferenceModel):
    """No sensitive value gains more than the relative amount β in any class: (p − q) / q ≤ β wherever p > q.

    Unlike t, β bounds each value by itself, so rare values are protected too. p is the share in the class, q in the
    whole input table.

    Attributes:
        beta: Above 0.
        column: The sensitive column.
        enhanced: The limit for a value is min(β, −ln q), which keeps frequent values in bounds too.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> BetaLikeness(1, "illness").fitted(table).satisfied(classes)
        array([ True, False])
    """

    beta: Rational
    column: str
    enhanced: bool = False
    name: ClassVar[str] = "beta-likeness"
    protection: ClassVar[Protection] = Protection(
        "No value of {column} is more likely in a class by more than the factor 1 + {beta} than in the whole table.",
        "Values may become less likely without a bound.",
    )

    def __post_init__(self) -> None:
        if exact(self.beta, "beta") <= 0:
            raise ConfigurationError(f"beta is {self.beta}; it must be above 0.")

    def gains(self, classes: Histograms) -> NDArray[np.float64]:
        """Shape (c,): the largest relative gain of any value in each class; 0 where no value gains."""
        reference, counts, sizes = self._compared(classes)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = reference.deviations(counts, sizes) / (sizes[:, None] * reference.counts.astype(np.float64))
        return np.asarray(np.nan_to_num(ratios, nan=0.0, posinf=np.inf).max(axis=1, initial=0.0))

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        return "beta", LikenessClaim(value=written(self.beta), column=self.column, enhanced=self.enhanced)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): in which classes no value gains too much."""
        reference, counts, sizes = self._compared(classes)
        deviations = reference.deviations(counts, sizes)
        beta = exact(self.beta, "beta")
        if deviations.dtype == np.int64:
            allowed = sizes[:, None] * reference.counts
            within = at_most(deviations, beta, allowed).all(axis=1)
        else:
            within = self.gains(classes) <= float(beta) + TOLERANCE
        if self.enhanced:
            limits = -np.log(np.maximum(reference.counts, 1) / reference.total)
            slack = sizes[:, None] * (reference.counts * limits + TOLERANCE * reference.total)
            within &= (deviations <= slack).all(axis=1)
        return np.asarray(within, bool)
