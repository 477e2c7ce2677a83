"""What each column is to privacy: identifier, quasi-identifier, sensitive or insensitive; and a proposal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from anonymize.columns import Column, Kind, Value, default_kind, missing
from anonymize.reading import Tabular, as_arrow
from link.errors import ConfigurationError, InputDataError

Role = Literal["identifiers", "quasi_identifiers", "sensitive", "insensitive"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES: Final[dict[Role, frozenset[str]]] = {
    "identifiers": _words(
        "id uid uuid name firstname lastname surname forename email mail phone telephone mobile fax ssn passport "
        "licence license account iban user username login address street ip url mrn"
    ),
    "sensitive": _words(
        "disease diagnosis illness condition hiv drug medication treatment symptom income salary wage pay balance debt "
        "credit religion belief party vote orientation conviction crime"
    ),
    "quasi_identifiers": _words(
        "age birth birthday birthdate dob born sex gender zip zipcode postcode postal city town region state country "
        "nationality native race ethnicity marital education degree occupation job profession employer height weight "
        "admission discharge"
    ),
}
_CODES: Final = _words("zip zipcode postcode postal icd code")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_UNIQUE: Final = 0.9  # distinct values per row from which a column is nearly unique


@dataclass(frozen=True)
class Roles:
    """Every column in exactly one role; no role is guessed, since a column that is forgotten is a leak.

    Attributes:
        identifiers: Name a person by themselves: name, account, e-mail. They are never released.
        quasi_identifiers: Known to others, and identifying together: birth date, sex, postal code; generalised.
        sensitive: What nobody may learn of a person: diagnosis, salary.
        insensitive: Neither; released as they are.

    Raises:
        ConfigurationError: A column has two roles, or a role is not a list of names.
    """

    identifiers: tuple[str, ...] = ()
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    insensitive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for field in fields(self):
            names: Sequence[str] = getattr(self, field.name)
            if isinstance(names, str):
                raise ConfigurationError(f'The role {field.name} is the text "{names}"; it must be a list of columns.')
            for name in names:
                if name in seen:
                    raise ConfigurationError(
                        f'Column "{name}" is listed under {seen[name]} and under {field.name}; give it one role.'
                    )
                seen[name] = field.name
            object.__setattr__(self, field.name, tuple(names))

    def check(self, columns: Sequence[str]) -> None:
        """Holds the roles against the columns of a table.

        Raises:
            ConfigurationError: A column has no role, or a role names a column that the table lacks.
        """
        given = (*self.identifiers, *self.quasi_identifiers, *self.sensitive, *self.insensitive)
        unknown = [name for name in given if name not in columns]
        if unknown:
            raise ConfigurationError(
                f'The roles name column "{unknown[0]}", which the table lacks; its columns are {", ".join(columns)}.'
            )
        without = [name for name in columns if name not in given]
        if without:
            raise ConfigurationError(
                f"These columns have no role: {', '.join(without)}. List each of them under identifiers, "
                "quasi_identifiers, sensitive or insensitive."
            )

    def of(self, column: str) -> Role:
        """The role of a column: the name of the attribute that lists it.

        Raises:
            ConfigurationError: The column has no role.
        """
        for field in fields(self):
            if column in getattr(self, field.name):
                role: Role = field.name  # type: ignore[assignment]  # the fields are the roles
                return role
        raise ConfigurationError(f'Column "{column}" has no role.')


@dataclass(frozen=True)
class Suggestion:
    """What a column may be, for a person to decide.

    Attributes:
        column: Its name.
        role: The role that is proposed.
        kind: The kind that its values seem to have.
        reason: Why, as a sentence.
    """

    column: str
    role: Role
    kind: Kind
    reason: str


def suggest_roles(data: Tabular) -> tuple[Suggestion, ...]:
    """Proposes a role and a kind for each column, with the reason; a person who knows the data decides.

    A column that nothing speaks for is proposed as a quasi-identifier, the cautious choice.

    Args:
        data: Of pyarrow, pandas or polars, a dictionary of lists, or a list of dictionaries.

    Raises:
        InputDataError: It is no table.
    """
    table = as_arrow(data)
    return tuple(_suggestion(name, cells) for name, cells in zip(table.column_names, table.columns, strict=True))


def _suggestion(name: str, cells: pa.ChunkedArray) -> Suggestion:
    kind = _likely_kind(name, cells)
    rows, distinct = len(cells), len(pc.unique(cells))
    words = [word.lower() for word in _WORD.findall(name)]
    named = next((role for role, known in _NAMES.items() if known & {*words, "".join(words)}), None)
    if distinct <= 1:
        return Suggestion(name, "insensitive", kind, "It has the same value in all rows.")
    nearly_unique = rows > 1 and distinct >= _UNIQUE * rows
    if named == "identifiers":
        return Suggestion(name, named, kind, "Its name is that of an identifier.")
    if nearly_unique and named is None and kind in ("tree", "code"):
        return Suggestion(
            name, "identifiers", kind, f"It is text, and nearly unique: {distinct} values in {rows} rows."
        )
    if named == "sensitive":
        return Suggestion(name, named, kind, "Its name is that of something that people keep to themselves.")
    if named == "quasi_identifiers":
        return Suggestion(name, named, kind, "Its name is that of something that others know of a person.")
    if nearly_unique:
        reason = f"It is nearly unique: {distinct} values in {rows} rows. If it numbers persons, it is an identifier."
        return Suggestion(name, "quasi_identifiers", kind, reason)
    reason = f"Others may know it: {distinct} values in {rows} rows. Nothing says what it is, so caution does."
    return Suggestion(name, "quasi_identifiers", kind, reason)


def _likely_kind(name: str, cells: pa.ChunkedArray) -> Kind:
    kind = default_kind(cells)
    if _CODES & {word.lower() for word in _WORD.findall(name)} and kind in ("tree", "numeric"):
        return "code"
    if kind != "tree":
        return kind
    held = pc.unique(cells.filter(pa.array(~missing(cells))))
    texts = [str(value) for value in held.to_pylist()]
    if not texts:
        return kind
    if any(re.fullmatch(r"0\d+", text) for text in texts):
        return "code"
    candidates: tuple[Kind, ...] = ("numeric", "date") if {"0", "1"} >= set(texts) else ("boolean", "numeric", "date")
    return next((likely for likely in candidates if _all_are(likely, texts)), kind)


def _all_are(kind: Kind, texts: Sequence[Value]) -> bool:
    try:
        Column.of("", pa.chunked_array([pa.array(texts)]), kind)
    except InputDataError:
        return False
    return True
