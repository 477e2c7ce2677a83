"""What `comine anonymize risk --json` prints, as a model from which its published schema is made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part


class ProsecutorRisk(Part):
    """The attacker knows that the target is in the table."""

    classes: int = Field(ge=1)
    smallest: int = Field(ge=1, description="Rows of the smallest class.")
    highest: float = Field(description="1 / rows of the smallest class.")
    average: float = Field(description="Mean over rows; the marketer's share of right links, too.")
    above: float = Field(description="Share of rows whose risk is above the threshold.")
    unique: float = Field(description="Share of rows that are alone in their class.")


class PopulationRisk(Part):
    """The attacker knows only that the target is in a population, whose file was given."""

    people: int = Field(ge=1)
    highest: float = Field(description="Journalist: 1 / people whom the rarest class may be.")
    average: float = Field(description="Journalist: mean over rows.")
    above: float = Field(description="Journalist: share of rows whose risk is above the threshold.")
    marketer: float = Field(description="Share of rows that a link with the population is expected to get right.")


class Homogeneity(Part):
    """How alike a sensitive column is within classes."""

    highest: float = Field(description="Largest share of one value in a class.")
    average: float = Field(description="Mean over rows of their class's largest share.")
    homogeneous_classes: int = Field(ge=0, description="Classes of one value.")
    homogeneous_rows: float = Field(description="Share of rows in them.")


class AttributeLinkage(Part):
    """What linking reveals about a sensitive column."""

    highest: float = Field(description="The greatest certainty about a target's value.")
    average: float = Field(description="Mean certainty over the targets that match.")
    disclosed: int = Field(ge=0, description="Targets whose matches all have one value.")


class LinkageRisk(Part):
    """An attacker's list of people, linked by their quasi-identifiers."""

    attacker: str = Field(description="The file; or the original, where none was given.")
    columns: list[str] = Field(description="What the attacker knows.")
    targets: int = Field(ge=0)
    matched: int = Field(ge=0, description="Targets that match a published row.")
    unique: int = Field(ge=0, description="Targets that match one row alone.")
    expected_links: float = Field(description="Mean chance, over all targets, to pick the right one of the matches.")
    attributes: dict[str, AttributeLinkage] = Field(description="By sensitive column.")


class DistanceRisk(Part):
    """Every original record linked to the nearest published numbers."""

    columns: list[str]
    expected_links: float = Field(description="Expected share of right links.")
    right: int = Field(ge=0, description="Records whose own published record is among the nearest.")


class RiskDocument(Part):
    """All of it. What is null could not be measured; `notes` say why."""

    schema_: Literal["comine.anonymization-risk/1"] = Field(alias="schema")
    software: str
    rows: int = Field(ge=0, description="Published rows.")
    suppressed: int = Field(ge=0, description="Published rows without quasi-identifiers.")
    threshold: float
    prosecutor: ProsecutorRisk | None
    population: PopulationRisk | None
    sensitive: dict[str, Homogeneity]
    linkage: LinkageRisk | None
    distance: DistanceRisk | None
    notes: list[str]
