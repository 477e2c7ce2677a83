"""Results of several runs beside each other, as JSON: what `comine job compare` prints, and a console shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part

_HEX_DIGEST = r"^[0-9a-f]{64}$"


class ComparedRun(Part):
    """One of the results."""

    job_id: str = Field(pattern=_HEX_DIGEST)
    name: str
    task: str
    created: str = Field(description="In UTC, ISO 8601.")
    n_rows: int | None = Field(description="Rows of all parties, or those that all have; null where nobody learns it.")
    positions: int | None = Field(description="Public positions of rows, where their number is not known.")
    figures: dict[str, int] = Field(description="The key figures of its report, by what they count.")


class ComparedRow(Part):
    """An itemset, a rule, or a number with a name."""

    sides: list[list[str]] = Field(description="Its items; of a rule those of both sides, of a number its name.")
    before: list[float | None] = Field(description="Its figures in the earlier result; null where they are not known.")
    after: list[float | None] = Field(description="In the later one.")


class ComparedRows(Part):
    """Rows that differ in one way."""

    number: int = Field(ge=0, description="How many there are.")
    rows: list[ComparedRow] = Field(description="The first 100, by the largest figure or difference.")


class ComparedTable(Part):
    """How what was found differs."""

    table: str = Field(description="Such as itemsets, rules, or the numbers of a model or a release.")
    figures: list[str] = Field(description="What the numbers of its rows are, in their order.")
    same: int = Field(ge=0, description="Rows that both have with equal figures.")
    appeared: ComparedRows
    vanished: ComparedRows
    changed: ComparedRows


class RunStep(Part):
    """From one result to the next."""

    before: str = Field(pattern=_HEX_DIGEST)
    after: str = Field(pattern=_HEX_DIGEST)
    asked: list[str] = Field(description="What was asked otherwise, in words; empty where both are runs of one job.")
    tables: list[ComparedTable] = Field(description="What both results have.")


class RunComparison(Part):
    """All of it."""

    schema_: Literal["comine.run-comparison/1"] = Field(alias="schema")
    runs: list[ComparedRun] = Field(description="In the order in which they are compared.")
    steps: list[RunStep]
