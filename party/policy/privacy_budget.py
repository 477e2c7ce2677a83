"""What jobs may cost the records of one dataset in all: the table `[dataset.privacy]`, and sums against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction as Ratio
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, model_validator

from jobs.documents.budget import Amounts
from jobs.privacy_account import Charge
from jobs.spec.privacy import Delta
from jobs.spec.toml import TomlTable
from jobs.spec.values import Duration, Fraction
from ldp.accounting.composition import Guarantee, optimal
from ldp.accounting.rounding import float_above
from link.errors import ConfigurationError

NAMES: Final[Mapping[str, str]] = {"epsilon": "epsilon", "delta": "delta", "local_epsilon": "local epsilon"}
"""Amounts, and what they are called in sentences."""

MOST_WITHOUT_FLOORS: Final = 10
"""The largest total of ε beside which noise stands in for floors of counts: beyond, it hides little of a record."""

_SUMS: Final = Context(prec=200)  # of decimals as jobs have them, more than sums of all that a disk can hold need


def _total(value: Decimal) -> Decimal:
    if not (value.is_finite() and 0 < value <= 1_000_000):
        raise ValueError(f"{value} must be above 0 and at most 1000000")
    return value


Total = Annotated[Fraction, AfterValidator(_total)]


class DatasetBudget(TomlTable):
    """The `[dataset.privacy]` table: a total that is left out limits nothing.

    Attributes:
        epsilon: ε of all jobs together, towards anyone who sees their results.
        delta: δ of that.
        local_epsilon: ε of all reports together that leave about one record, towards anyone who sees them leave.
        period: Only jobs count that were started within so long a time; all, where absent.
        composition: `basic`: ε and δ of jobs add up, however they were chosen. `optimal`: the least ε that jobs have
            together for the δ of the table, which holds where their ε and δ were fixed before any of their results
            was known, such as those of a weekly job.
        exact: Whether jobs may run without noise, whose results no ε bounds.
    """

    epsilon: Total | None = None
    delta: Delta | None = None
    local_epsilon: Total | None = None
    period: Duration | None = None
    composition: Literal["basic", "optimal"] = "basic"
    exact: Literal["allow", "refuse"] = "allow"

    @model_validator(mode="after")
    def _consistent(self) -> DatasetBudget:
        if self.epsilon is not None and self.delta is None:
            raise ValueError("epsilon needs delta beside it, such as 1e-6: without, jobs with any delta could add up")
        if self.composition == "optimal" and (self.epsilon is None or self.delta is None):
            raise ValueError('composition = "optimal" needs epsilon and delta beside it')
        if self.period is not None and (self.epsilon, self.delta, self.local_epsilon) == (None, None, None):
            raise ValueError("period limits nothing; write epsilon, delta or local_epsilon beside it")
        return self

    @property
    def bounds_noise(self) -> bool:
        """Whether the totals keep results so noisy, all jobs together, that noise can stand in for floors of counts."""
        return self.delta is not None and self.epsilon is not None and self.epsilon <= MOST_WITHOUT_FLOORS


@dataclass(frozen=True, slots=True)
class Totals:
    """What several jobs cost a record together.

    Attributes:
        local_epsilon: Sum of ε of its reports.
        epsilon: ε towards anyone who sees the results.
        delta: δ of that.
    """

    local_epsilon: Decimal = Decimal(0)
    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)


def totals(charges: Sequence[Charge], budget: DatasetBudget | None = None) -> Totals:
    """What jobs cost together; those under the exact model add nothing, for nothing bounds what they reveal.

    Args:
        charges: Of the jobs.
        budget: How they are composed; by the basic theorem, where absent.
    """
    with localcontext(_SUMS):
        found = Totals(
            sum((each.local_epsilon or Decimal(0) for each in charges), Decimal(0)),
            sum((each.epsilon or Decimal(0) for each in charges), Decimal(0)),
            sum((each.delta or Decimal(0) for each in charges), Decimal(0)),
        )
    if budget is None or budget.composition == "basic" or budget.delta is None or not found.epsilon:
        return found
    given = [
        Guarantee(float_above(Ratio(each.epsilon)), float_above(Ratio(each.delta or 0)))
        for each in charges
        if each.epsilon is not None
    ]
    try:
        together = Decimal(optimal(given, float(budget.delta)).epsilon)
    except ConfigurationError:  # their own δs leave nothing of the table's to compose with
        return found
    return found if together >= found.epsilon else Totals(found.local_epsilon, together, budget.delta)


def left(budget: DatasetBudget, spent: Totals) -> dict[str, Decimal]:
    """What is left of each total that the table has; never below 0."""
    with localcontext(_SUMS):
        return {
            key: max(Decimal(0), total - getattr(spent, key))
            for key in NAMES
            if (total := getattr(budget, key)) is not None
        }


def amounts(numbers: Mapping[str, Decimal | None]) -> Amounts:
    """Amounts by name as they are published."""
    texts = {name: None if number is None else f"{number.normalize(_SUMS):f}" for name, number in numbers.items()}
    return Amounts(**{name: texts.get(name) for name in NAMES})


def amounts_of(cost: Charge | Totals | DatasetBudget) -> Amounts:
    """The amounts of a job, of several, or of a table, as they are published."""
    return amounts({name: getattr(cost, name) for name in NAMES})


def short(number: Decimal) -> str:
    """A number for people: all digits of a short one, six of a long one."""
    normal = number.normalize()
    text = f"{normal:e}" if Decimal("1e-4") > abs(normal) > 0 else f"{normal:f}"
    return text if len(text) <= 12 else f"{float(number):.6g}"
