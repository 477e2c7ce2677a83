"""Entries of `[anonymize.hierarchies]`: a file, or a rule by which a hierarchy is built."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from jobs.spec_values import Fraction, Section


class FileEntry(Section):
    """A file of the hierarchy: CSV with a row for each leaf, or JSON."""

    builder: Literal["file"] = "file"
    file: str = Field(min_length=1)
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    add_top: bool = False


class IntervalsEntry(Section):
    """Ever wider intervals of numbers.

    Attributes:
        widths: Of the intervals of each level.
        origin: Where one of them begins.
        range: First and last whole number that may occur; by default the leaves are the numbers of the column.
    """

    builder: Literal["intervals"]
    widths: tuple[Fraction, ...] = Field(min_length=1)
    origin: Fraction = Field(default=0)  # type: ignore[assignment]  # a whole number is as good as a decimal
    range: tuple[int, int] | None = None

    @model_validator(mode="after")
    def _ascending(self) -> IntervalsEntry:
        if self.range is not None and not 0 <= self.range[1] - self.range[0] <= 10_000_000:
            raise ValueError("range must be the first and the last whole number, ascending")
        return self


class OrderEntry(Section):
    """Runs of ordered values: by level, how many labels of the level below make one."""

    builder: Literal["order"]
    groups: tuple[int | tuple[int, ...], ...] = Field(min_length=1)


class PrefixEntry(Section):
    """Codes whose last characters are masked: by level, how many."""

    builder: Literal["prefix"]
    masked: tuple[int, ...] = Field(min_length=1)


Period = Literal["month", "quarter", "year", "decade", "century"]


class DatesEntry(Section):
    """The calendar's periods."""

    builder: Literal["dates"]
    levels: tuple[Period, ...] = ("month", "quarter", "year", "decade")


class GroupingEntry(Section):
    """Groups by name: by level, the labels of the level below that each label is made of."""

    builder: Literal["grouping"]
    groups: tuple[dict[str, tuple[str, ...]], ...] = Field(min_length=1)


class FlatEntry(Section):
    """The value, then `*`."""

    builder: Literal["flat"]


def _tagged(value: object) -> object:
    """A bare text is the path of a file, and so is a table that names one."""
    if isinstance(value, str):
        return {"builder": "file", "file": value}
    if isinstance(value, dict) and "builder" not in value and "file" in value:
        return {"builder": "file", **value}
    if isinstance(value, dict) and "builder" not in value:
        raise ValueError("needs a file or a builder: intervals, order, prefix, dates, grouping or flat")
    return value


_Entry = Annotated[
    FileEntry | IntervalsEntry | OrderEntry | PrefixEntry | DatesEntry | GroupingEntry | FlatEntry,
    Field(discriminator="builder"),
]
HierarchyEntry = Annotated[_Entry, BeforeValidator(_tagged, json_schema_input_type=str | _Entry)]
