"""The columns that a model is learnt from, as all parties know them: each codes its own cells, all alike.

A cell is coded as a whole number: the place of its value in a public domain, the interval that holds it, or the nearest
of equal steps between public bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import ConfigurationError, InputDataError
from mining.data.items.discretisation import Cuts, interval_names, interval_of, number_of
from mining.data.tables import Column, Table
from mining.models.plain_numbers import Millionths, intervals_of, plain_numbers, steps_of

N = TypeVar("N", bound=np.generic)

Codes = NDArray[np.int64]
"""One a row."""

MAX_STEPS = 1 << 31  # their squares are added up in 64 bits


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of texts.

    Attributes:
        name: Of the column.
        values: The public domain: distinct; the empty text, where empty cells are a value like any other.

    Raises:
        ConfigurationError: The domain is empty or names a value twice.
    """

    wrong: ClassVar[str] = "is not in the public domain of this attribute"

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ConfigurationError(f"the domain of '{self.name}' must name one value or more, each once")

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values)

    def codes(self, column: Column) -> Codes:
        """The place of each row's value in the domain.

        Raises:
            InputDataError: A cell is outside the domain; the sentence says how many are.
        """
        return _all_allowed(self, self.places(column))

    def places(self, column: Column) -> Codes:
        """The same, −1 for a cell that is outside the domain."""
        places = {value: place for place, value in enumerate(self.values)}
        return _looked_up(column, lambda text: places.get(text))


@dataclass(frozen=True, slots=True)
class Intervals:
    """A column of numbers that are distinguished by public cuts alone: an interval is closed below and open above.

    Attributes:
        name: Of the column.
        cuts: Ascending, and at least one.

    Raises:
        ConfigurationError: There are no cuts, or they do not ascend.
    """

    wrong: ClassVar[str] = "is no number"

    name: str
    cuts: Cuts

    def __post_init__(self) -> None:
        if not self.cuts or any(low >= high for low, high in zip(self.cuts, self.cuts[1:], strict=False)):
            raise ConfigurationError(f"the cuts of '{self.name}' must be one number or more in ascending order")

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.cuts) + 1

    @property
    def values(self) -> tuple[str, ...]:
        """The intervals as they are written."""
        return tuple(interval_names(self.cuts))

    def codes(self, column: Column) -> Codes:
        """The interval of each row's number.

        Raises:
            InputDataError: A cell is empty or no number; the sentence says how many are.
        """
        return _all_allowed(self, self.places(column))

    def places(self, column: Column) -> Codes:
        """The same, −1 for a cell that is empty or no number."""

        def place(text: str) -> int | None:
            number = number_of(text)
            return None if number is None else interval_of(number, self.cuts)

        return _looked_up(column, place, lambda numbers: intervals_of(numbers, self.cuts))


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers that are computed with, in fixed point: `low` and `steps` equal steps up to `high`.

    Attributes:
        name: Of the column.
        low: Public bound; a number below it counts as this one.
        high: Public bound; a number above it counts as this one.
        steps: How many steps there are between them. A number is rounded to the nearest, a half to the even one.

    Raises:
        ConfigurationError: The bounds are not in order, or the steps none or too many.
    """

    wrong: ClassVar[str] = "is no number"

    name: str
    low: Decimal
    high: Decimal
    steps: int

    def __post_init__(self) -> None:
        if not (self.low.is_finite() and self.high.is_finite() and self.low < self.high):
            raise ConfigurationError(f"the bounds of '{self.name}' must be two numbers, the lower one first")
        if not 1 <= self.steps < MAX_STEPS:
            raise ConfigurationError(f"'{self.name}' must have from 1 to {MAX_STEPS - 1} steps between its bounds")

    @property
    def step(self) -> Fraction:
        """Length of a step."""
        return (Fraction(self.high) - Fraction(self.low)) / self.steps

    def codes(self, column: Column) -> Codes:
        """Of each row's number, how many steps it is above `low`.

        A number outside the bounds is no error: the author of a job could ask by failing jobs how far a party's
        numbers reach.

        Raises:
            InputDataError: A cell is empty or no number; the sentence says how many are.
        """
        return _all_allowed(self, self.places(column))

    def places(self, column: Column) -> Codes:
        """The same, −1 for a cell that is empty or no number."""

        def place(text: str) -> int | None:
            number = number_of(text)
            return None if number is None else self.place(Fraction(min(max(number, self.low), self.high)))

        return _looked_up(column, place, lambda numbers: steps_of(numbers, self.low, self.high, self.steps))

    def place(self, number: Fraction) -> int:
        """How many steps a number is above `low`, rounded."""
        return round((number - Fraction(self.low)) / self.step)

    def numbers(self, codes: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers that steps mean."""
        found: NDArray[np.float64] = float(self.low) + float(self.step) * codes.astype(np.float64)
        return found


Attribute = Categorical | Intervals | Numeric
Discrete = Categorical | Intervals


def check_names(*attributes: Attribute) -> None:
    """Refuses attributes that are not each of a column of its own.

    Raises:
        ConfigurationError: Two have the same name.
    """
    name, times = Counter(attribute.name for attribute in attributes).most_common(1)[0]
    if times > 1:
        raise ConfigurationError(f"the column '{name}' is named twice; a model takes each column once")


@dataclass(frozen=True, eq=False, slots=True)
class LabelledRows:
    """Coded rows of a known class.

    Attributes:
        classes: Shape (rows,), places in the target's domain.
        cells: By attribute, shape (rows,).
    """

    classes: Codes
    cells: tuple[Codes, ...]

    @classmethod
    def of(cls, table: Table, target: Categorical, attributes: tuple[Attribute, ...]) -> LabelledRows:
        """The rows of a table.

        Raises:
            InputDataError: A column is missing, or a cell is not what its attribute allows.
        """
        return cls(target.codes(column_of(table, target)), coded_columns(table, attributes))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.classes)

    def total(self, kernel: Callable[[LabelledRows], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.models.coded_tables.Labelled`."""
        return kernel(self)


def coded_columns(table: Table, attributes: tuple[Attribute, ...]) -> tuple[Codes, ...]:
    """The codes of a table's cells, by attribute.

    Raises:
        InputDataError: A column is missing, or a cell is not what its attribute allows.
    """
    return tuple(attribute.codes(column_of(table, attribute)) for attribute in attributes)


def column_of(table: Table, attribute: Attribute) -> Column:
    """The column that an attribute is of.

    Raises:
        InputDataError: The table does not have it.
    """
    check_column(table.column_names, attribute)
    return next(column for column in table.columns if column.name == attribute.name)


def check_column(names: Sequence[str], attribute: Attribute) -> None:
    """Refuses a table that does not have an attribute's column among these.

    Raises:
        InputDataError: It does not.
    """
    if attribute.name not in names:
        raise InputDataError(f'the dataset has no column "{attribute.name}", which the job names; check the spelling.')


def check_outside(attribute: Attribute, outside: int) -> None:
    """Refuses a column where so many rows hold what the attribute does not allow.

    Raises:
        InputDataError: There are such rows.
    """
    if outside:
        rows, hold = ("1 row", "holds") if outside == 1 else (f"{outside} rows", "hold")
        raise InputDataError(
            f'{rows} of the column "{attribute.name}" {hold} what {attribute.wrong}; extend it, or leave them out.'
        )


def _all_allowed(attribute: Attribute, codes: Codes) -> Codes:
    """The same codes, of which none may be negative."""
    check_outside(attribute, int(np.count_nonzero(codes < 0)))
    return codes


def _looked_up(
    column: Column, place: Callable[[str], int | None], of_plain: Callable[[Millionths], Codes | None] | None = None
) -> Codes:
    """The codes of a column's cells, −1 where there is none, each distinct text looked at once.

    Args:
        column: The column.
        place: The code of a text.
        of_plain: The codes of plain numbers all at once, where it can tell; the same as `place` gives.
    """
    table, texts = np.full(len(column.values) + 1, -1, np.int64), column.values
    left = np.ones(len(table), bool)
    if of_plain is not None:
        plain, numbers = plain_numbers(texts)
        known = of_plain(numbers)
        if known is not None:
            left[:-1] = ~plain
            table[:-1][plain] = known
            texts = texts.filter(pa.array(~plain))
    found = [place(text) for text in (*texts.to_pylist(), "")]  # the last one is for cells that are empty
    table[left] = [-1 if code is None else code for code in found]
    codes: Codes = table[column.codes]
    return codes
