"""`compare.json`: a job under several privacy models, as models from which its published schema is made."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jobs.documents.part import Part
from jobs.documents.result import Privacy
from jobs.kinds.packages import ModelName


class ComparedAccuracy(Part):
    """How near what was found comes to what the exact model finds: means over the runs."""

    found: float = Field(ge=0, description="Itemsets that were found.")
    f1: float = Field(ge=0, le=1, description="Harmonic mean of precision and recall.")
    f1_deviation: float | None = Field(description="Standard deviation of F1 over the runs; null for a single one.")
    precision: float = Field(ge=0, le=1, description="Share of the found itemsets that are true.")
    recall: float = Field(ge=0, le=1, description="Share of the true itemsets that were found.")
    ncr: float = Field(ge=0, le=1, description="Normalised cumulative rank.")
    mean_absolute: float | None = Field(
        description="Mean absolute error of the supports of true itemsets that were found; null where none was."
    )
    root_mean_square: float | None = Field(description="Root of the mean squared error of the same.")
    covered: float | None = Field(description="Share of the same whose 95 % interval holds the true support.")


class ComparedModel(Part):
    """What the job gave and cost under one model, with one ε."""

    model: ModelName
    epsilon: str | None = Field(description="ε that the job allowed, as it was written; null under the exact model.")
    runs: int = Field(ge=1, description="How often it was run.")
    accuracy: ComparedAccuracy
    privacy: Privacy | None = Field(description="What a record has spent; null under the exact model.")
    bytes_sent: float = Field(ge=0, description="Bytes of protocol frames of all parties together; mean of the runs.")
    rounds: int = Field(ge=0, description="Longest chain of messages that waited for each other.")
    seconds: float = Field(ge=0, description="Of the slowest party, from the greeting to the result; mean of the runs.")


class NotCompared(Part):
    """A model under which the job did not run."""

    model: ModelName
    epsilon: str | None = Field(description="ε that was asked for.")
    code: str = Field(description="Of the error, such as E100.")
    reason: str = Field(description="Why not, in a sentence.")


class CompareDocument(Part):
    """The whole of `compare.json`."""

    schema_: Literal["comine.compare/1"] = Field(alias="schema")
    software: str = Field(description="Version of comine.")
    job: dict[str, Any] = Field(description="The job file's tables, as `result.json` has them.")
    simulated: bool = Field(description="Whether all parties ran in one process.")
    n_rows: int = Field(ge=0, description="Transactions of all parties together, as the exact model counts them.")
    true_itemsets: int = Field(ge=0, description="Itemsets that the exact model finds.")
    seeds: list[int] | None = Field(description="Of the runs; null where every party drew at random.")
    models: list[ComparedModel] = Field(description="The exact model first; the others by model, then ε.")
    not_run: list[NotCompared]
