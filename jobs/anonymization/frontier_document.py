"""`frontier.json`: what exploring parameters gave, as a model from which its published schema is made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part


class Point(Part):
    """A run that gave a release."""

    parameters: dict[str, int | float]
    risk: float = Field(description="Highest prosecutor risk: 1 / rows of the smallest class.")
    loss: float = Field(description="GCP.")
    classes: int = Field(ge=0)
    suppressed: int = Field(ge=0)
    pareto: bool = Field(description="Whether no other run is better in risk or loss and as good in the other.")


class Refusal(Part):
    """Parameters that no release meets."""

    parameters: dict[str, int | float]
    reason: str


class FrontierDocument(Part):
    """The whole of `frontier.json`."""

    schema_: Literal["comine.anonymization-frontier/1"] = Field(alias="schema")
    software: str
    algorithm: str
    rows: int = Field(ge=1)
    points: list[Point]
    refused: list[Refusal]
