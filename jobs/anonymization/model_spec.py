"""The tables `[anonymize.model]` and `[anonymize.levels]`: what every class of a release must meet."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from jobs.spec.values import ColumnName, Fraction, Section

Kind = Literal["numeric", "ordinal", "tree", "boolean", "date", "code"]
"""What the values of a column are."""

Whole = Annotated[int, Field(strict=True)]  # neither 5.0 nor "5" nor true


def _as_tables(value: object) -> object:
    """One number or table as a list of one table; a list as it is."""
    if isinstance(value, list | tuple):
        return value
    return [value if isinstance(value, dict | Section) else {"value": value}]


class DiversitySection(Section):
    """l-diversity of a sensitive column."""

    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    value: Fraction = Field(ge=1)
    column: ColumnName | None = None
    c: Fraction | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _suits_its_kind(self) -> DiversitySection:
        if (self.kind == "recursive") != (self.c is not None):
            raise ValueError("c belongs to recursive l-diversity, which needs it")
        if self.kind != "entropy" and self.value != int(self.value):
            raise ValueError(f"{self.kind} l-diversity counts values: l is {self.value}, which is not whole")
        return self


class ClosenessSection(Section):
    """t-closeness of a sensitive column."""

    distance: Literal["equal", "variational", "kl", "ordered", "hierarchical"] = "equal"
    value: Fraction = Field(ge=0)
    column: ColumnName | None = None
    ground: Literal["rank", "value"] = "rank"


class SensitivitySection(Section):
    """p distinct values of every listed sensitive column; of all of them by default."""

    value: Whole = Field(ge=1)
    columns: tuple[ColumnName, ...] = ()


class ShareSection(Section):
    """(alpha, k): the largest share of a sensitive value in a class."""

    value: Fraction = Field(gt=0, le=1)
    column: ColumnName | None = None
    values: tuple[str, ...] | None = None


class LikenessSection(Section):
    """beta-likeness of a sensitive column."""

    value: Fraction = Field(gt=0)
    column: ColumnName | None = None
    enhanced: bool = False


class DisclosureSection(Section):
    """delta-disclosure of a sensitive column."""

    value: Fraction = Field(gt=0)
    column: ColumnName | None = None


def _one_or_many(section: type[Section]) -> BeforeValidator:
    """Takes a number, a table or a list of tables, and says so in the JSON Schema."""
    return BeforeValidator(_as_tables, json_schema_input_type=float | section | list[section])  # type: ignore[valid-type]


_Diversity = Annotated[tuple[DiversitySection, ...], _one_or_many(DiversitySection)]
_Closeness = Annotated[tuple[ClosenessSection, ...], _one_or_many(ClosenessSection)]
_Sensitivity = Annotated[tuple[SensitivitySection, ...], _one_or_many(SensitivitySection)]
_Share = Annotated[tuple[ShareSection, ...], _one_or_many(ShareSection)]
_Likeness = Annotated[tuple[LikenessSection, ...], _one_or_many(LikenessSection)]
_Disclosure = Annotated[tuple[DisclosureSection, ...], _one_or_many(DisclosureSection)]


class ModelSection(Section):
    """The `[anonymize.model]` table: every condition that all classes meet.

    Each but k and H is a number or a table, or a list of tables where several sensitive columns have one each.
    """

    k: Whole | None = Field(default=None, ge=1)
    l: _Diversity = ()  # noqa: E741 - the model's own name
    t: _Closeness = ()
    p: _Sensitivity = ()
    alpha: _Share = ()
    h: Whole | None = Field(default=None, alias="H", ge=1)
    beta: _Likeness = ()
    delta: _Disclosure = ()


class LevelsSection(Section):
    """The `[anonymize.levels]` table: levels of sensitivity, low to high, and their weights."""

    values: tuple[tuple[str, ...], ...] = Field(min_length=1)
    weights: tuple[Fraction, ...] | None = None
    column: ColumnName | None = None
