"""What every privacy model offers to algorithms, reports and verification."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from anonymize.grouping import Histograms
from anonymize.tables import Table

Claim = tuple[str, Any]
"""A key of a certificate's `model`, and an entry of it; of an outside model a dict of JSON values."""


class Protection(NamedTuple):
    """What holds of a release and what does not, as sentences with the names of parameters in braces.

    Example:
        >>> KAnonymity(5).protection.holds
        "Anyone who knows a person's quasi-identifiers finds at least {k} rows that could be theirs."
    """

    holds: str
    open: str


class Model(Protocol):
    """A condition on single classes; a release meets it if each of its classes does.

    Example:
        >>> model = KAnonymity(5)
        >>> model.name, model.parameters, model.monotone
        ('k-anonymity', {'k': 5}, True)
    """

    @property
    def name(self) -> str:
        """What certificates and reports call it."""
        ...

    @property
    def parameters(self) -> Mapping[str, object]:
        """Its parameters by name, as they were given."""
        ...

    @property
    def column(self) -> str | None:
        """The sensitive column that it looks at; None if it looks at none or at several."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """All sensitive columns that it looks at."""
        ...

    @property
    def monotone(self) -> bool:
        """Whether any union of satisfying classes satisfies.

        Then every generalisation of a satisfying table satisfies, and algorithms may prune without suppression.
        """
        ...

    @property
    def monotone_with_suppression(self) -> bool:
        """Whether any union of a satisfying class with anything satisfies.

        Then the number of records in violating classes never rises under generalisation, and algorithms may prune with
        suppression.
        """
        ...

    @property
    def least_size(self) -> int:
        """A size that every satisfying class has at least."""
        ...

    @property
    def protection(self) -> Protection:
        """What it protects, and what it leaves open, for people who have to answer for a release."""
        ...

    def claim(self, table: Table | None) -> Claim:
        """What a certificate claims of a release that meets it.

        Args:
            table: The input; None if nobody has it any more.

        Raises:
            ConfigurationError: The claim needs the table.
        """
        ...

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes meet the condition.

        Args:
            classes: With a histogram of each of `columns`.
        """
        ...

    def fitted(self, table: Table) -> Self:
        """The model with what it must know of the input table; algorithms fit before they check.

        Raises:
            ConfigurationError: A column is not there or not sensitive, or does not suit the model.
        """
        ...

    def infeasible(self, table: Table, suppressible: int) -> str | None:
        """Why no release of a table can meet the condition, as a sentence; None where that is not certain.

        Args:
            table: The input.
            suppressible: How many records may be left out at most.
        """
        ...


@dataclass(frozen=True)
class ClassModel(ABC):
    """What models share: a look for their columns, and refusal where the whole table as one class fails.

    Example:
        >>> isinstance(KAnonymity(5), ClassModel), str(KAnonymity(5))
        (True, 'k-anonymity (k = 5)')
    """

    monotone: ClassVar[bool] = True
    monotone_with_suppression: ClassVar[bool] = False
    name: ClassVar[str]
    protection: ClassVar[Protection]

    if TYPE_CHECKING:  # a property of some models and a field of others

        @property
        def columns(self) -> tuple[str, ...]:
            """All sensitive columns that the model looks at."""

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters by name, as they were given; a hierarchy and what `fitted` sets are none."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.repr}

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.parameters.items() if value is not None)
        return f"{self.name} ({given})"

    @abstractmethod
    def claim(self, table: Table | None) -> Claim:
        """The key of a certificate's `model`, and the entry there."""

    @abstractmethod
    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes meet the condition."""

    def fitted(self, table: Table) -> Self:
        """The same model, after a look whether its columns are sensitive ones of the table.

        Raises:
            ConfigurationError: A column is not there or not sensitive.
        """
        for name in self.columns:
            table.sensitive_column(name)
        return self

    def infeasible(self, table: Table, suppressible: int) -> str | None:
        """Without suppression a monotone model can be met if and only if the table as one class meets it."""
        fitted = self.fitted(table)
        if suppressible or not self.monotone or fitted.satisfied(whole(table, self.columns))[0]:
            return None
        return (
            f"{self} cannot be met without suppression: all {table.n_rows} records as one class do not meet it, so no "
            "generalisation does."
        )


@dataclass(frozen=True)
class SingleColumnModel(ClassModel):
    """A model that looks at one sensitive column, `column`.

    Example:
        >>> TCloseness(0.2, "illness").columns
        ('illness',)
    """

    if TYPE_CHECKING:

        @property
        def column(self) -> str:
            """The column."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)


def whole(table: Table, columns: Sequence[str]) -> Histograms:
    """The table as one class."""
    counts = {name: table.sensitive_column(name).counts.reshape(1, -1) for name in columns}
    return Histograms(np.array([table.n_rows]), counts)
