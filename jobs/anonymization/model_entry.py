"""What an entry of `[anonymize.model]` is to all that handles it: runs, jobs and the policies of nodes.

An entry names a condition on sensitive columns. comine's own are in `model_spec`; other packages bring more as entry
points of the group `comine.anonymity_models`, by their keys.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Self

from pydantic import BeforeValidator

from jobs.spec.values import Section
from link.plugins import load_class, names

if TYPE_CHECKING:
    from anonymize.hierarchies.hierarchy import Hierarchy
    from anonymize.models import Model

GROUP: Final = "comine.anonymity_models"


class Entry(Section):
    """A condition on sensitive columns, as a configuration names it.

    A number alone is its `value`.
    """

    @property
    @abstractmethod
    def named(self) -> tuple[str, ...]:
        """The columns that it names."""

    @abstractmethod
    def columns_of(self, sensitive: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that it protects, of a table with these sensitive ones; none where that is not clear."""

    @abstractmethod
    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:
        """The model of `anonymize` that it names.

        Args:
            columns: What it protects.
            hierarchies: By column, those of sensitive columns too.

        Raises:
            ConfigurationError: A parameter is wrong, or a hierarchy is missing.
        """

    @abstractmethod
    def is_as_strict_as(self, least: Self) -> bool:
        """Whether an entry about the same column holds wherever this one does, by their parameters."""

    def by_column(self) -> list[Self]:
        """An entry for each column that it names."""
        return [self]


class ColumnEntry(Entry):
    """A condition on one sensitive column, `column`; None names the only one."""

    if TYPE_CHECKING:  # each has the field in a place of its own

        @property
        def column(self) -> str | None:
            """The column."""

    @property
    def named(self) -> tuple[str, ...]:
        """The one column, if it is named."""
        return () if self.column is None else (self.column,)

    def columns_of(self, sensitive: tuple[str, ...]) -> tuple[str, ...]:
        """The column that is named, or the only one."""
        return self.named or (sensitive if len(sensitive) == 1 else ())


def one_or_many(entry: type[Entry]) -> BeforeValidator:
    """Takes a number, a table or a list of tables, and says so in the JSON Schema."""
    return BeforeValidator(_as_tables, json_schema_input_type=float | entry | list[entry])  # type: ignore[valid-type]


def outside(keys: Iterable[str]) -> dict[str, type[Entry]]:
    """The entries that other packages bring, by key, of those keys for which one does.

    Raises:
        ConfigurationError: What one brings cannot be used.
    """
    known = set(names(GROUP))  # looked up once, however many keys a stranger sends
    found = {
        key: load_class(GROUP, key, Entry)  # type: ignore[type-abstract]
        for key in keys
        if key in known
    }
    return {key: entry for key, entry in found.items() if entry is not None}


def _as_tables(value: object) -> object:
    """One number or table as a list of one table; a list as it is."""
    if isinstance(value, list | tuple):
        return value
    return [value if isinstance(value, dict | Section) else {"value": value}]
