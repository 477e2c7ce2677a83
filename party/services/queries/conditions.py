"""Which records meet a condition, and the numbers of a column.

An empty cell meets no comparison, and neither does a cell that is no number meet one with a number; `not` turns either
round, as `!=` does not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any as Anything
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, InputDataError
from mining.data.tables import Column, Table
from party.services.queries.language import All, Any, Comparison, Condition, Not, OneOf
from party.services.queries.policy import QueriesSection

Rows = NDArray[np.bool_]

_COMPARE: Final[dict[str, Callable[[Anything, Anything], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BITS: Final = {"0": 0, "1": 1, "false": 0, "true": 1}
_LARGEST_EXPONENT: Final = 290  # of a cell that is a number, so that every sum of a column is a float
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def column_of(table: Table, name: str) -> Column:
    """A column of a table.

    Raises:
        ConfigurationError: There is none of that name.
    """
    for column in table.columns:
        if column.name == name:
            return column
    raise ConfigurationError(
        f"the data have no column '{name}', which [dataset.queries] names; ids are none that conditions may name"
    )


class Conditions:
    """Evaluates conditions over a table, cell by different cell and not record by record.

    Args:
        table: The records.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._numbers: dict[str, list[Decimal | None]] = {}

    def meeting(self, condition: Condition | None) -> Rows:
        """Which records meet a condition, shape (n_rows,).

        Raises:
            ConfigurationError: It names a column that there is not.
        """
        match condition:
            case None:
                return np.ones(self._table.n_rows, bool)
            case Comparison(column=name, operator=sign, value=str(text)):
                return self._rows(name, (_COMPARE[sign](cell, text) for cell in self._texts(name)))
            case Comparison(column=name, operator=sign, value=number):
                found = self._decimals(name)
                return self._rows(name, (each is not None and _COMPARE[sign](each, number) for each in found))
            case OneOf(column=name, values=values):
                cells = zip(self._texts(name), self._decimals(name), strict=True)
                wanted = frozenset(values)  # no text is equal to a number
                return self._rows(name, (text in wanted or number in wanted for text, number in cells))
            case Not(part=part):
                return ~self.meeting(part)
            case All(parts=parts):
                every: Rows = np.all([self.meeting(each) for each in parts], axis=0)
                return every
            case Any(parts=parts):
                some: Rows = np.any([self.meeting(each) for each in parts], axis=0)
                return some

    def total(self, name: str, rows: Rows) -> float:
        """The sum of a column over rows in which it holds numbers, rounded once.

        A sum of rounded cells would reveal more than the sum: 0.1 and 0.2 give 0.30000000000000004, and 0.15 twice 0.3.
        """
        column = column_of(self._table, name)
        times = np.bincount(column.codes[rows], minlength=len(column.values)).tolist()
        total = Decimal(0)
        for number, count in zip(self._decimals(name), times, strict=True):
            if count:
                assert number is not None  # as the column was read before
                total = _EXACT.fma(number, count, total)
        return float(total)

    def _rows(self, name: str, met: Iterable[bool]) -> Rows:
        found = np.array([*met, False])  # the last one is for empty cells, whose code is −1
        return found[column_of(self._table, name).codes]

    def _texts(self, name: str) -> list[str]:
        texts: list[str] = column_of(self._table, name).values.to_pylist()
        return texts

    def _decimals(self, name: str) -> list[Decimal | None]:
        if name not in self._numbers:
            self._numbers[name] = list(map(_decimal, self._texts(name)))
        return self._numbers[name]


def _decimal(cell: str) -> Decimal | None:
    try:
        number = Decimal(cell)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= _LARGEST_EXPONENT else None


def read_column(policy: QueriesSection, table: Table, name: str) -> NDArray[np.float64]:
    """What queries about a column are computed from, NaN where it is empty; shape (n_rows,).

    Raises:
        ConfigurationError: There is no such column.
        InputDataError: It does not hold what its queries need.
    """
    column = column_of(table, name)
    return bits(column) if policy.counts(name) else numbers(column)


def check_columns(policy: QueriesSection, table: Table) -> None:
    """Makes sure that a table has the columns that its policy names, and that they hold what queries need.

    Raises:
        ConfigurationError: A column is missing.
        InputDataError: One does not hold what its queries need.
    """
    for name in policy.public:
        column_of(table, name)
    for name in policy.columns:
        read_column(policy, table, name)


def numbers(column: Column) -> NDArray[np.float64]:
    """A number a record, NaN where the cell is empty; shape (n_rows,).

    Raises:
        InputDataError: Cells are no numbers, or there are two values only, which sums do not protect.
    """
    found = np.full(len(column.values) + 1, np.nan)
    for place, cell in enumerate(column.values.to_pylist()):
        if (number := _decimal(cell)) is not None:
            found[place] = float(number)
    if not np.isfinite(found[:-1]).all():
        raise InputDataError(
            f"the column '{column.name}' holds cells that are no numbers; empty them, or leave the column out of "
            "[dataset.queries]"
        )
    if len(np.unique(found[:-1])) <= 2:
        raise InputDataError(
            f"the column '{column.name}' has no more than two values, which auditing of sums, maxima and minima does "
            'not protect; offer it as "count" in [dataset.queries]'
        )
    return found[column.codes]


def bits(column: Column) -> NDArray[np.float64]:
    """A zero or one a record, NaN where the cell is empty; shape (n_rows,).

    Raises:
        InputDataError: Cells are something else.
    """
    cells = column.values.to_pylist()
    if not set(cells) <= _BITS.keys():
        raise InputDataError(
            f"the column '{column.name}' cannot be counted: it holds other cells than 0 and 1, or false and true"
        )
    return np.array([*(float(_BITS[cell]) for cell in cells), np.nan])[column.codes]
