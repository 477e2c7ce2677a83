"""What the clustering algorithms ask of a table and of their parameters."""

from __future__ import annotations

from collections.abc import Mapping

from anonymize.clustering.attributes import Attribute, attribute_of
from anonymize.columns import Column
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.tables import Table
from link.errors import ConfigurationError


def check_k(k: int, n_rows: int) -> None:
    """Refuses a k that no table of so many rows can have.

    Raises:
        ConfigurationError: k lies outside 1 … n.
    """
    if k < 1:
        raise ConfigurationError(f"k is {k}, but a class has one record at least; choose a k from 2 up.")
    if k > n_rows:
        raise ConfigurationError(f"k is {k}, but the table has {n_rows} rows only; choose a k of at most {n_rows}.")


def attributes_of(table: Table, hierarchies: Mapping[str, Hierarchy]) -> tuple[Attribute, ...]:
    """The attributes of a table's quasi-identifiers.

    Raises:
        ConfigurationError: There are no quasi-identifiers, or a hierarchy is of another column.
        InputDataError: A hierarchy lacks values of its column.
    """
    if not table.quasi_identifiers:
        raise ConfigurationError("The table has no quasi-identifiers, so there is nothing to cluster by; name some.")
    for name in hierarchies:
        if name not in table.roles.quasi_identifiers:
            raise ConfigurationError(f'A hierarchy is given for "{name}", which is no quasi-identifier; take it away.')
    return tuple(attribute_of(column, hierarchies.get(column.name)) for column in table.quasi_identifiers)


def sensitive_column(table: Table, name: str | None) -> Column:
    """The sensitive column that a model looks at: the named one, or the only one.

    Raises:
        ConfigurationError: There is no such column, none at all, or several without a name.
    """
    if name is not None:
        return table.sensitive_column(name)
    if len(table.sensitive) != 1:
        found = ", ".join(f'"{column.name}"' for column in table.sensitive) or "none"
        raise ConfigurationError(f"One sensitive column is needed, and the table has {found}; name one as `column`.")
    return table.sensitive[0]
