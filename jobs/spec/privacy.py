"""The `[privacy]` table of a job: under which model the result is computed, and what of ε and δ it may cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from jobs.federation import Name
from jobs.kinds.packages import PrivacyModel, is_pure
from jobs.spec.values import Fraction, Section

Noise = Literal["discrete-gaussian", "skellam"]
Search = Literal["auto", "svim", "svsm", "ldp-miner", "privset", "wheel"]

MOST_DELTA: Final = Decimal("0.0001")
"""The largest δ of a job, and of all jobs on a dataset together.

To publish a row that is drawn at random keeps to (0, δ)-differential privacy with δ of one in the number of rows (Dwork
and Roth 2014, section 2.3), so δ has to be far below that. This is for a thousand rows.
"""


def _budget(value: Decimal) -> Decimal:
    if not (value.is_finite() and 0 < value <= 100):
        raise ValueError(f"{value} must be above 0 and at most 100")
    return value


def _failure(value: Decimal) -> Decimal:
    if not (value.is_finite() and 0 < value <= MOST_DELTA):
        raise ValueError(
            f"{value} must be above 0 and at most {MOST_DELTA}, such as 1e-6: so likely a record may be revealed"
        )
    return value


Epsilon = Annotated[Fraction, AfterValidator(_budget)]
Delta = Annotated[Fraction, AfterValidator(_failure)]


class PrivacySection(Section):
    """The `[privacy]` table.

    Attributes:
        model: `exact`: no noise; only what the job opens is learnt. `local`: every record is perturbed at its party and
            the analyst sees each party's reports. `shuffle`: the same, and shufflers hide whose report is whose.
            `distributed`: the parties add noise inside the secure sum, so that nobody sees a count without it.
            `blended`: parties that opted in give noisy counts, and the others' records are perturbed.
        epsilon: ε of one record: towards everybody in the local model, otherwise towards those who see the result.
        delta: δ of one record, in all models but `local`.
        local_epsilon: Shuffle: the most ε of a report towards anyone who sees it unshuffled; by default what the
            central budget allows, and at most 8.
        analyst: The party that gets reports and estimates from them; the first of the job, unless said.
        shufflers: Parties through which reports go, one after the other; the last of the job, unless said.
        colluding: How many parties may pool what they know, one that sees the result among them: their noise, or their
            reports, count for nothing. With 1, the default, every party looks alone.
        noise: Distributed: the law of the noise.
        contributions: Distributed: to how many candidates of each length a record counts at most, for itemsets of 1,
            2, … items; the last holds for longer ones.
        search: How itemsets are searched by reports; `auto` takes `svim` where max_length = 1, else `svsm`.
        opted_in: Blended: the parties whose people trust them to count.
    """

    model: PrivacyModel
    epsilon: Epsilon | None = None
    delta: Delta | None = None
    local_epsilon: Epsilon | None = None
    analyst: Name | None = None
    shufflers: tuple[Name, ...] | None = Field(default=None, min_length=1, max_length=8)
    colluding: int = Field(default=1, ge=0, le=63)
    noise: Noise = "discrete-gaussian"
    contributions: tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...] | None = Field(
        default=None, min_length=1, max_length=64
    )
    search: Search = "auto"
    opted_in: tuple[Name, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _budgets(self) -> PrivacySection:
        if self.model == "exact":
            return self
        if self.epsilon is None:
            raise ValueError(f'model = "{self.model}" needs epsilon, such as 1.0')
        if self.delta is None and not is_pure(self.model):
            raise ValueError(f'model = "{self.model}" needs delta, such as 1e-6')
        return self
