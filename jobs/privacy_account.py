"""What a job may cost each record of its datasets at most, from its specification alone.

A party's ledger charges this before anything of the job leaves it. What the job has really spent is known once the
numbers of records are, and never more.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from jobs.kinds.packages import ModelName
from mining.joint.hybrid.parameters import MOST_LOCAL

LARGEST_LOCAL: Final = Decimal(MOST_LOCAL)
"""ε of a report of a shuffled job that names no `local_epsilon`, at most."""


class PrivacyTerms(Protocol):
    """What of a `[privacy]` table says what a job may cost."""

    @property
    def model(self) -> str:
        """The privacy model."""

    @property
    def epsilon(self) -> Decimal | None:
        """ε of one record."""

    @property
    def delta(self) -> Decimal | None:
        """δ of one record."""

    @property
    def local_epsilon(self) -> Decimal | None:
        """The most ε of a report, where the table says it."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What a job may cost one record. Decimals are as the job has them, so that sums of them are exact.

    Attributes:
        model: Under which the job runs.
        local_epsilon: ε towards anyone who sees the record's report as it leaves its party; None where none leaves.
        epsilon: ε towards anyone who sees the result; None under the exact model, which bounds nothing.
        delta: δ of that; None under the exact model.
    """

    model: ModelName
    local_epsilon: Decimal | None
    epsilon: Decimal | None
    delta: Decimal | None
