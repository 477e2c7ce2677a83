"""A party's privacy ledger as JSON, `comine.budget/1`: what `comine party budget --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part
from jobs.kinds.packages import ModelName
from mining.data.row_ids import Case, Unicode


class Amounts(Part):
    """Amounts of privacy, as exact decimals; null where there is no such limit or no such amount."""

    local_epsilon: str | None = Field(
        description="ε towards anyone who sees a record's reports as they leave the party."
    )
    epsilon: str | None = Field(description="ε towards anyone who sees results.")
    delta: str | None = Field(description="δ of that.")


class ModelSpent(Part):
    """What the jobs under one privacy model may have cost each record."""

    starts: int = Field(ge=1, description="How many starts of jobs were charged.")
    spent: Amounts = Field(description="Their sums; null under the exact model, which bounds nothing.")


class ChargedStart(Part):
    """One start of a job."""

    job_id: str = Field(pattern=r"^[0-9a-f]{64}$")
    attempt: int = Field(ge=1, description="Counts the starts of the job.")
    name: str
    coordinator: str
    started: str = Field(description="In UTC, ISO 8601.")
    model: ModelName
    charged: Amounts = Field(description="What it may have cost each record of the dataset.")
    state: str = Field(description="How far the job has come; unknown where the node does not keep it any more.")
    counts: bool = Field(description="Whether it was started within the period that counts.")


class ColumnsTaken(Part):
    """Which rows jobs over columns have in common, and into which intervals they put numbers; keys as in job files."""

    trim: bool
    case: Case
    unicode: Unicode
    groups: list[list[str]] = Field(description="The parties of each group.")
    intervals: dict[str, list[str] | int] = Field(
        description="Of each column, its cuts as decimals, or into how many quantiles its numbers are put."
    )


class TakenTogether(Part):
    """What the policy's rule `min_group` takes together of exact jobs, on all datasets of the same source."""

    sums: list[list[str]] = Field(description="Sets of parties of whose own numbers jobs have opened sums.")
    more: list[list[str]] = Field(description="Sets of parties of jobs that have opened more than such sums.")
    thresholds: list[str] = Field(
        description="Thresholds of jobs that opened no supports: counts, fractions with a point, ? where none is known."
    )
    columns: list[ColumnsTaken | None] = Field(
        description="Of jobs over columns, each way once; null where a way is not known any more."
    )
    versions: int = Field(ge=0, description="On how many versions of its rows they ran.")


class DatasetSpent(Part):
    """The ledger of one dataset."""

    name: str
    exact: Literal["allow", "refuse"] = Field(description="Whether jobs may run without noise.")
    composition: Literal["basic", "optimal"]
    period: str | None = Field(description="Only jobs count that were started within so long; null: all count.")
    totals: Amounts = Field(description="What [dataset.privacy] allows.")
    spent: Amounts = Field(description="What the jobs that count may have cost together.")
    left: Amounts = Field(description="What is left of the totals.")
    models: dict[ModelName, ModelSpent] = Field(description="Of all jobs, whether they count or not.")
    together: TakenTogether
    jobs: list[ChargedStart] = Field(description="The first first.")


class BudgetDocument(Part):
    """The ledgers of a party's datasets."""

    schema_: Literal["comine.budget/1"] = Field(default="comine.budget/1", alias="schema")
    party: str
    datasets: list[DatasetSpent]
