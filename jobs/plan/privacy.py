"""What a job costs the records of its parties, as a plan shows it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Self

from pydantic import Field

from jobs.documents.budget import Amounts
from jobs.documents.part import Part
from jobs.kinds.packages import ModelName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.privacy_account import Charge
    from mining.joint.spent import Spent
    from protos.v1.plan_pb2 import PartyEstimate

MOST_DIGITS = 60  # of an amount that a party states


class NoisyLevel(Part):
    """The noise in the counts of one length."""

    length: int = Field(ge=1, description="Items of the itemsets.")
    contributions: int = Field(ge=1, description="To how many candidates a record counts at most.")
    deviation: float = Field(ge=0, description="Standard deviation of a count's noise, with so many contributions.")


class Privacy(Part):
    """What the job costs each record."""

    model: ModelName
    local_epsilon: float | None = Field(
        description="ε towards anyone who sees the record's report alone; null: none is."
    )
    epsilon: float = Field(description="ε towards anyone who sees the result.")
    delta: float = Field(description="δ of that.")
    n: int | None = Field(description="Reports that hide it at least; null where noise alone does.")
    bound: str = Field(description="By which theorem.")
    noise: list[NoisyLevel] = Field(description="By length, where noise is added to counts.")
    charge: Amounts = Field(description="What the ledger of each party is charged before the job begins.")

    @classmethod
    def of(cls, spent: Spent, cost: Charge, noise: Sequence[NoisyLevel] = ()) -> Self:
        """From what a record is expected to spend and what it may spend at most."""
        return cls.model_validate(
            {
                "model": cost.model,
                "local_epsilon": spent.local_epsilon,
                "epsilon": spent.epsilon,
                "delta": spent.delta,
                "n": spent.n,
                "bound": spent.bound,
                "noise": list(noise),
                "charge": Amounts(
                    local_epsilon=_text(cost.local_epsilon), epsilon=_text(cost.epsilon), delta=_text(cost.delta)
                ),
            }
        )

    def prose(self) -> list[str]:
        """It in sentences."""
        lines = [
            f"Towards anyone who sees the result: epsilon {self.epsilon:.4g}, delta {self.delta:.3g} ({self.bound}"
            + ("" if self.n is None else f", among {self.n:,} reports of parties that collude with nobody")
            + ")."
        ]
        if self.local_epsilon is not None:
            lines.append(f"Towards anyone who sees a report as it leaves its party: epsilon {self.local_epsilon:.4g}.")
        lines += [
            f"Counts of itemsets of {each.length} carry noise of standard deviation {each.deviation:.4g} at most; a "
            f"record counts to at most {each.contributions:,} of them."
            for each in self.noise
        ]
        local = "" if self.charge.local_epsilon is None else f", local epsilon {self.charge.local_epsilon}"
        lines.append(
            f"Each party's ledger is charged epsilon {self.charge.epsilon}, delta {self.charge.delta}{local}, whatever "
            "becomes of the job once it has started."
        )
        return lines


def published_left(answer: PartyEstimate) -> Amounts | None:
    """What a party says is left of its totals; None where it does not."""
    if not answer.HasField("left"):
        return None
    left = answer.left
    return Amounts(local_epsilon=left.local_epsilon or None, epsilon=left.epsilon or None, delta=left.delta or None)


def is_amount(text: str) -> bool:
    """Whether a party may mean this as an amount: empty, or a decimal of at least 0."""
    try:
        return not text or (len(text) <= MOST_DIGITS and Decimal(text).is_finite() and Decimal(text) >= 0)
    except InvalidOperation:
        return False


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}"
