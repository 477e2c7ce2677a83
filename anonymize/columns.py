"""Columns of a table, coded: distinct values in their order, and for each row the position of its value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import ConfigurationError, InputDataError

Kind = Literal["numeric", "ordinal", "tree", "boolean", "date", "code"]
Value = str | int | float | bool | datetime.date

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
NUMBERED: Final = ("numeric", "boolean", "date")
"""Kinds whose values are numbers by nature, so that a missing cell can be no value among them."""

SHOWN: Final = 5  # values or rows that a sentence names
_TRUTH: Final = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


def text_of(value: Value) -> str:
    """How a value is written in a released cell and in a hierarchy's leaf.

    Whole numbers have no decimals (39.0 is `39`), other numbers the fewest digits that give them back, dates are ISO
    8601, truth is `true` or `false`.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def number_of(text: str) -> int | float:
    """The number that a text writes: an int where it is one, else a finite float.

    Raises:
        ValueError: It writes none.
    """
    if "_" in text or not text.isascii():  # Python reads 1_000 as a number, and the digits of all scripts
        raise ValueError(f"{text} is no number")
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


@dataclass(frozen=True, eq=False)
class Column:
    """One column, coded.

    Attributes:
        name: As in the table.
        kind: What its values are, and so how they may be generalised and compared.
        domain: Distinct values in the kind's order: numbers, dates and truth ascending, ordinal ones as text in the
            order given (all of it, whether rows hold them or not), texts by code point. The missing value, where it is
            one, is the empty text and comes first.
        codes: Shape (n,): by row, the position in `domain`.
    """

    name: str
    kind: Kind
    domain: tuple[Value, ...]
    codes: NDArray[np.int32]

    @property
    def size(self) -> int:
        """How many distinct values there are."""
        return len(self.domain)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The domain as `text_of` writes it."""
        return tuple(map(text_of, self.domain))

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Shape (m,): each value of the domain as a number.

        A numeric value itself, the rank of an ordinal value (from 0), the day number of a date, 0 or 1 for truth.

        Raises:
            ConfigurationError: The values of this kind are no numbers.
        """
        if self.kind == "ordinal":
            return np.arange(self.size, dtype=np.float64)
        if self.kind == "date":
            return np.array([day.toordinal() for day in self.domain if isinstance(day, datetime.date)], np.float64)
        if self.kind in ("numeric", "boolean"):
            return np.array(self.domain, np.float64)
        raise ConfigurationError(
            f'Column "{self.name}" is of kind {self.kind}, whose values are no numbers; declare it numeric, ordinal or '
            "date, or leave it out here."
        )

    @property
    def is_ordered(self) -> bool:
        """Whether `numbers` are defined."""
        return self.kind not in ("tree", "code")

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Shape (m,): how many rows hold each value of the domain."""
        return np.bincount(self.codes, minlength=self.size).astype(np.int64, copy=False)

    @classmethod
    def of(cls, name: str, cells: pa.ChunkedArray, kind: Kind | None = None, order: Sequence[Value] = ()) -> Column:
        """Codes the cells of a column; missing ones become the value "".

        Args:
            name: Of the column.
            cells: Text, numbers, truth or dates; a dictionary of these.
            kind: What the values are; by default `default_kind` of the cells.
            order: All values of an ordinal column, lowest first.

        Raises:
            ConfigurationError: The kind is unknown, an ordinal column has no order, or a value is missing where the
                kind allows none.
            InputDataError: A cell is no value of the kind; the sentence names it and its row.
        """
        cells = _plain(cells)
        kind = kind or default_kind(cells)
        if kind not in KINDS:
            raise ConfigurationError(f'Column "{name}" cannot be of kind "{kind}"; the kinds are {", ".join(KINDS)}.')
        if (kind == "ordinal") != bool(order):
            raise ConfigurationError(
                f'Column "{name}" is ordinal but has no order; list its values, lowest first.'
                if kind == "ordinal"
                else f'Column "{name}" has an order but is of kind {kind}; declare it ordinal.'
            )
        if kind in NUMBERED:
            gaps = np.flatnonzero(missing(cells))
            if len(gaps):
                raise ConfigurationError(
                    f'Column "{name}" lacks {len(gaps)} values, the first in row {gaps[0]}, and a missing cell is no '
                    f"{kind} value; drop such rows, fill them in, or declare the column a tree."
                )
        if kind == "numeric" and (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
            return cls(name, kind, *_coded_numbers(name, cells))
        encoded = _text_free_of_nulls(cells, kind).dictionary_encode().combine_chunks()
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        values = _parsed(name, kind, encoded.dictionary.to_pylist(), indices)
        if kind == "ordinal":
            return cls(name, kind, *_in_order(name, values, indices, order))
        domain = tuple(sorted(set(values)))
        places = {value: place for place, value in enumerate(domain)}
        return cls(name, kind, domain, np.array([places[value] for value in values], np.int32)[indices])


def default_kind(cells: pa.ChunkedArray) -> Kind:
    """Numbers are numeric, truth is boolean, days are dates; all else is a tree.

    Time stamps are dates where none has a time of day.
    """
    cells = _plain(cells)
    kind = cells.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numeric"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and _are_days(cells)):
        return "date"
    return "tree"


def missing(cells: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Shape (n,): which cells are missing: null, the empty text, or no number (NaN)."""
    cells = _plain(cells)
    empty = pc.is_null(cells, nan_is_null=pa.types.is_floating(cells.type))
    if _is_text(cells.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(cells, ""), True))
    return np.asarray(empty.to_numpy(), bool)


def listed(values: Sequence[object]) -> str:
    """The first few values in quotes, and how many more there are, for a sentence."""
    shown = ", ".join(f'"{value}"' for value in values[:SHOWN])
    return shown if len(values) <= SHOWN else f"{shown} and {len(values) - SHOWN} more"


def _plain(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells without a dictionary."""
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _are_days(stamps: pa.ChunkedArray) -> bool:
    same = pc.equal(pc.floor_temporal(stamps, unit="day"), stamps)
    return bool(pc.all(same, min_count=0).as_py())


def _coded_numbers(name: str, cells: pa.ChunkedArray) -> tuple[tuple[int | float, ...], NDArray[np.int32]]:
    numbers = cells.to_numpy()
    if pa.types.is_floating(cells.type):
        infinite = np.flatnonzero(~np.isfinite(numbers))
        if len(infinite):
            raise InputDataError(f'Column "{name}" is not finite in row {infinite[0]}; correct or drop this row.')
        numbers = numbers + 0.0  # −0 is 0
    domain, codes = np.unique(numbers, return_inverse=True)
    return tuple(domain.tolist()), codes.reshape(-1).astype(np.int32)


def _text_free_of_nulls(cells: pa.ChunkedArray, kind: Kind) -> pa.ChunkedArray:
    """Cells that are read by their text, a missing one as the empty text; dates and truth remain what they are."""
    if kind == "date" and (pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type)):
        return cells
    if pa.types.is_boolean(cells.type):
        return cells if kind == "boolean" else pc.fill_null(cells.cast(pa.string()), "")
    if pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type):
        texts = [None if v is None or v != v else text_of(float(v)) for v in cells.to_pylist()]
        cells = pa.chunked_array([pa.array(texts, pa.large_string())])
    return pc.fill_null(cells.cast(pa.large_string()), "")


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return _TRUTH[str(value).lower()]


def _day(value: object) -> datetime.date:
    if isinstance(value, datetime.datetime):
        if value.time() != datetime.time():
            raise ValueError("it has a time of day")
        return value.date()
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))


_PARSERS: Final[dict[Kind, tuple[Callable[[object], Value], str]]] = {
    "numeric": (lambda value: number_of(str(value)), "number"),
    "boolean": (_truth, "truth value (true or false, yes or no, 1 or 0)"),
    "date": (_day, "date (YYYY-MM-DD, without a time of day)"),
}


def _parsed(name: str, kind: Kind, values: list[object], indices: NDArray[np.int32]) -> list[Value]:
    """Distinct cells as values of the kind.

    Raises:
        InputDataError: One is no such value; the first row that holds one is named.
    """
    if kind not in _PARSERS:
        return list(map(str, values))
    parse, expected = _PARSERS[kind]
    parsed: list[Value] = []
    wrong: list[int] = []
    for place, value in enumerate(values):
        try:
            parsed.append(parse(value))
        except (ValueError, KeyError, OverflowError):
            wrong.append(place)
    if wrong:
        rows = np.flatnonzero(np.isin(indices, wrong))
        raise InputDataError(
            f'Column "{name}" is declared {kind}, but "{values[indices[rows[0]]]}" in row {rows[0]} is no {expected} '
            f"({len(rows)} such rows); correct them or declare another kind."
        )
    return parsed


def _in_order(
    name: str, values: Sequence[Value], indices: NDArray[np.int32], order: Sequence[Value]
) -> tuple[tuple[Value, ...], NDArray[np.int32]]:
    """Codes by a given order; a missing cell comes before all."""
    texts = [text_of(value) for value in order]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ConfigurationError(f'The order of column "{name}" lists "{twice}" twice.')
    if "" in values and "" not in texts:
        texts.insert(0, "")
    ranks = {text: rank for rank, text in enumerate(texts)}
    unknown = [value for value in values if value not in ranks]
    if unknown:
        raise InputDataError(
            f'Column "{name}" holds values that its order does not list: {listed(unknown)}; add them to the order.'
        )
    return tuple(texts), np.array([ranks[str(value)] for value in values], np.int32)[indices]
