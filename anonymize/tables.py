"""Tables to anonymise: rows of coded columns, each with its role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.columns import NUMBERED, SHOWN, Column, Kind, Value, default_kind, missing
from anonymize.reading import Tabular, as_arrow
from anonymize.roles import Roles
from link.errors import ConfigurationError, InputDataError

Missing = Literal["error", "value", "drop"]
_NO_KINDS: Final[Mapping[str, Kind]] = MappingProxyType({})
_NO_ORDERS: Final[Mapping[str, Sequence[Value]]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of coded columns with their roles.

    Attributes:
        columns: All columns by name, in the input's order. Identifiers and insensitive ones are coded when they are
            asked for.
        roles: What each is to privacy.
        n_rows: How many rows there are, at least one.
        data: The same rows as they were given, text or typed.
        kept: Shape (n_rows,): where each row stood in the data given; all of them unless rows were dropped.
        dropped: How many rows were left out since they lack values.
    """

    columns: Mapping[str, Column]
    roles: Roles
    n_rows: int
    data: pa.Table = field(repr=False)
    kept: NDArray[np.int64] = field(repr=False)
    dropped: int = 0

    @classmethod
    def of(
        cls,
        data: Tabular,
        roles: Roles,
        kinds: Mapping[str, Kind] = _NO_KINDS,
        orders: Mapping[str, Sequence[Value]] = _NO_ORDERS,
        missing: Missing = "error",
    ) -> Table:
        """Codes a table.

        Missing cells (null, NaN, the empty text) of quasi-identifiers and sensitive columns are met by `missing`. In
        other columns they may stay, and a column whose kind has no place for them is coded as text there.

        Args:
            data: Of pyarrow, pandas or polars, a dictionary of lists, or a list of dictionaries.
            roles: Of every column.
            kinds: Of columns that are not of the default kind (`columns.default_kind`); one in `orders` is ordinal.
            orders: The values of ordinal columns, lowest first.
            missing: "error" refuses them; "value" makes the missing cell a value of its own, the empty text (numeric,
                boolean and date columns refuse that); "drop" leaves the rows out.

        Raises:
            ConfigurationError: A column lacks a role; a role, kind or order names an unknown column or contradicts it.
            InputDataError: There are no rows, cells are missing, or a cell is no value of its column's kind.
        """
        arrow = as_arrow(data)
        roles.check(arrow.column_names)
        kinds = {**dict.fromkeys(orders, "ordinal"), **kinds}
        check_described(kinds, arrow.column_names, missing)
        given = arrow.num_rows
        if given == 0:
            raise InputDataError("The table has no rows; there is nothing to anonymise.")
        kept = np.arange(given)
        if missing != "value":
            kept = _complete_rows(arrow, roles, missing)
            arrow = arrow if len(kept) == given else arrow.take(pa.array(kept))
        columns = _Columns(arrow, roles, kinds, dict(orders))
        table = cls(columns, roles, arrow.num_rows, arrow, kept, given - len(kept))
        for name in (*roles.quasi_identifiers, *roles.sensitive):
            table.column(name)  # so that what is wrong with it is said now
        return table

    @cached_property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        """In the order of the roles."""
        return tuple(self.columns[name] for name in self.roles.quasi_identifiers)

    @cached_property
    def sensitive(self) -> tuple[Column, ...]:
        """In the order of the roles."""
        return tuple(self.columns[name] for name in self.roles.sensitive)

    @cached_property
    def quasi_codes(self) -> NDArray[np.int32]:
        """Shape (n, d): the codes of the quasi-identifiers, in the order of the roles."""
        if not self.quasi_identifiers:
            return np.empty((self.n_rows, 0), np.int32)
        return np.stack([column.codes for column in self.quasi_identifiers], axis=1)

    def column(self, name: str) -> Column:
        """The column of a name.

        Raises:
            ConfigurationError: There is none.
        """
        if name not in self.columns:
            raise ConfigurationError(f'The table has no column "{name}"; its columns are {", ".join(self.columns)}.')
        return self.columns[name]

    def sensitive_column(self, name: str) -> Column:
        """The sensitive column of a name.

        Raises:
            ConfigurationError: There is none, or it is not sensitive.
        """
        column = self.column(name)
        if name not in self.roles.sensitive:
            raise ConfigurationError(
                f'Column "{name}" is not sensitive but listed under {self.roles.of(name)}; list it under sensitive, or '
                "take the model off it."
            )
        return column


class _Columns(Mapping[str, Column]):
    """Columns by name, each coded when it is first asked for: of a wide table most only passes through."""

    def __init__(
        self, data: pa.Table, roles: Roles, kinds: Mapping[str, Kind], orders: Mapping[str, Sequence[Value]]
    ) -> None:
        self._data = data
        self._names = dict.fromkeys(data.column_names)
        self._free = {*roles.identifiers, *roles.insensitive}  # where gaps may stay
        self._kinds = kinds
        self._orders = orders
        self._coded: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._coded:
            cells = self._data.column(name)
            kind = self._kinds.get(name) or default_kind(cells)
            if name in self._free and kind in NUMBERED and missing(cells).any():
                kind = "tree"
            self._coded[name] = Column.of(name, cells, kind, self._orders.get(name, ()))
        return self._coded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def check_described(kinds: Mapping[str, Kind], columns: Sequence[str], missing: Missing) -> None:
    """Holds what is said of columns against their names.

    Raises:
        ConfigurationError: A kind is given for an unknown column, or `missing` is unknown.
    """
    for name in kinds:
        if name not in columns:
            raise ConfigurationError(
                f'A kind or order is given for column "{name}", which the table lacks; its columns are '
                f"{', '.join(columns)}."
            )
    if missing not in get_args(Missing):
        raise ConfigurationError(f'missing is "{missing}"; it must be one of {", ".join(get_args(Missing))}.')


def _complete_rows(arrow: pa.Table, roles: Roles, policy: Missing) -> NDArray[np.int64]:
    """The rows that lack no value in a quasi-identifier or sensitive column."""
    complete = np.ones(arrow.num_rows, bool)
    for name in (*roles.quasi_identifiers, *roles.sensitive):
        gaps = missing(arrow.column(name))
        if policy == "error" and gaps.any():
            rows = np.flatnonzero(gaps)
            first = ", ".join(map(str, rows[:SHOWN])) + (", …" if len(rows) > SHOWN else "")
            raise InputDataError(
                f'Column "{name}" lacks {len(rows)} of {arrow.num_rows} values (rows {first}); '
                'fill them in, or choose missing = "drop" or missing = "value".'
            )
        complete &= ~gaps
    if not complete.any():
        raise InputDataError("Every row lacks a value in a quasi-identifier or sensitive column; nothing is left.")
    return np.flatnonzero(complete)
