"""Entries of `[anonymize.hierarchies]`: a file, or a rule by which a hierarchy is built."""

from __future__ import annotations

import itertools
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from jobs.spec.values import Fraction, Section, plain_number

MOST_BINS: Final = 10_000


class FileEntry(Section):
    """A file of the hierarchy: CSV with a row for each leaf, or JSON.

    Attributes:
        builder: What makes the hierarchy.
        file: Its path.
        separator: Between the cells of a CSV file, if it is not that of the table.
        add_top: Puts a level `*` on top if the last one has several labels.
    """

    builder: Literal["file"] = "file"
    file: str = Field(min_length=1)
    separator: str | None = Field(default=None, min_length=1, max_length=1)
    add_top: bool = False


class IntervalsEntry(Section):
    """Ever wider intervals of numbers.

    Attributes:
        builder: What makes the hierarchy.
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


class BinsEntry(Section):
    """Bins of continuous numbers, which are never shown more exactly.

    Attributes:
        builder: What makes the hierarchy.
        range: First and last number that may occur; both belong to the bins.
        count: Bins of equal width between them.
        ends: Instead of both, where each bin begins and where the last one ends.
        groups: By level, how many labels of the level below make one.
    """

    builder: Literal["bins"]
    range: tuple[Fraction, Fraction] | None = None
    count: int | None = Field(default=None, ge=1, le=MOST_BINS)
    ends: tuple[Fraction, ...] | None = Field(default=None, min_length=2, max_length=MOST_BINS + 1)
    groups: tuple[Annotated[int, Field(ge=2)], ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> BinsEntry:
        if (self.range is None) != (self.count is None) or (self.range is None) == (self.ends is None):
            raise ValueError("bins need a range and a count, or their ends")
        given = self.ends or self.range or ()
        if any(low >= high for low, high in itertools.pairwise(given)):
            raise ValueError("the ends of bins must ascend")
        return self

    def bounds(self) -> list[int | float]:
        """Where each bin begins, and where the last one ends."""
        if self.ends is not None:
            return [plain_number(end) for end in self.ends]
        assert self.range is not None
        assert self.count is not None
        low, high = self.range
        return [plain_number(low + (high - low) * place / self.count) for place in range(self.count + 1)]


class OrderEntry(Section):
    """Runs of ordered values: by level, how many labels of the level below make one.

    Attributes:
        builder: What makes the hierarchy.
        groups: By level: one number for all labels, or one for each.
    """

    builder: Literal["order"]
    groups: tuple[int | tuple[int, ...], ...] = Field(min_length=1)


class PrefixEntry(Section):
    """Codes whose last characters are masked: by level, how many.

    Attributes:
        builder: What makes the hierarchy.
        masked: By level, how many.
    """

    builder: Literal["prefix"]
    masked: tuple[int, ...] = Field(min_length=1)


Period = Literal["month", "quarter", "year", "decade", "century"]


class DatesEntry(Section):
    """The calendar's periods.

    Attributes:
        builder: What makes the hierarchy.
        levels: The period of each level.
    """

    builder: Literal["dates"]
    levels: tuple[Period, ...] = ("month", "quarter", "year", "decade")


class GroupingEntry(Section):
    """Groups by name: by level, the labels of the level below that each label is made of.

    Attributes:
        builder: What makes the hierarchy.
        groups: By level, the labels and what each is made of.
    """

    builder: Literal["grouping"]
    groups: tuple[dict[str, tuple[str, ...]], ...] = Field(min_length=1)


class FlatEntry(Section):
    """The value, then `*`.

    Attributes:
        builder: What makes the hierarchy.
    """

    builder: Literal["flat"]


def _tagged(value: object) -> object:
    """A bare text is the builder without parameters or the path of a file; a table that names a file is one, too."""
    if value == "flat":
        return {"builder": "flat"}
    if isinstance(value, str):
        return {"builder": "file", "file": value}
    if isinstance(value, dict) and "builder" not in value and "file" in value:
        return {"builder": "file", **value}
    if isinstance(value, dict) and "builder" not in value:
        raise ValueError("needs a file or a builder: intervals, bins, order, prefix, dates, grouping or flat")
    return value


_Entry = Annotated[
    FileEntry | IntervalsEntry | BinsEntry | OrderEntry | PrefixEntry | DatesEntry | GroupingEntry | FlatEntry,
    Field(discriminator="builder"),
]
HierarchyEntry = Annotated[_Entry, BeforeValidator(_tagged, json_schema_input_type=str | _Entry)]
