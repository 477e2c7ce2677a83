"""Columns that point at rows or persons by themselves: values of few rows that leave as they are, repeated identifiers.

k-anonymity speaks of quasi-identifiers and of rows. A column that is released as it is and holds a value of its own for
nearly each row undoes it for anyone who knows that value; and where a person has several rows, k of them may be one
person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.columns import missing, text_of
from anonymize.grouping import group
from anonymize.roles import Roles
from link.errors import ConfigurationError
from link.files.printable import enumeration

IDENTIFYING: Final = Fraction(1, 2)
"""The share of rows above which a column whose values few rows have identifies rows, and is refused."""


class DisclosureWarning(UserWarning):
    """A release reveals more of persons than its models count."""


class Rare(NamedTuple):
    """Columns that are released as they are, and rows that stand out by them.

    Attributes:
        columns: One, or several taken together.
        share: Of the rows those whose values there fewer than the asked-for number of rows have.
    """

    columns: tuple[str, ...]
    share: Fraction


class Repeated(NamedTuple):
    """An identifier of which values have several rows.

    Attributes:
        column: Its name.
        several: Values that have several rows.
        values: All of its values.
        most: Rows of the most frequent one.
    """

    column: str
    several: int
    values: int
    most: int

    def __str__(self) -> str:
        return (
            f'Column "{self.column}" is an identifier, and {self.several} of its {self.values} values have several '
            f"rows, up to {self.most}"
        )


def rare(data: pa.Table, columns: Sequence[str], least: int) -> Iterator[Rare]:
    """Of each column, and of all of them together, how many rows stand out; what is said of none is left out.

    Args:
        data: The rows.
        columns: That are released as they are.
        least: How many rows must have a value so that it stands out no more.
    """
    coded = [_codes(data.column(name)) for name in columns]
    sets: list[tuple[tuple[str, ...], list[NDArray[np.int64]]]]
    sets = [((name,), [codes]) for name, codes in zip(columns, coded, strict=True)]
    if len(columns) > 1:
        sets.append((tuple(columns), coded))
    for names, codes in sets:
        labels, number = group(np.stack(codes, axis=1))
        known = np.any([each > 0 for each in codes], axis=0)  # a row that lacks all of them reveals nothing
        few = (np.bincount(labels, minlength=number) < least)[labels] & known
        if few.any():
            yield Rare(names, Fraction(int(few.sum()), len(few)))


def check_insensitive(data: pa.Table, columns: Sequence[str], allowed: Sequence[str], least: int) -> None:
    """Refuses columns that are to be released as they are and identify most rows.

    Args:
        data: The rows.
        columns: Insensitive ones that are released.
        allowed: Those of which somebody has said that nobody can know them of a person.
        least: As of `rare`.

    Raises:
        ConfigurationError: There is one.
    """
    refuse_identifying(rare(data, [name for name in columns if name not in allowed], least), least)


def refuse_identifying(found: Iterable[Rare], least: int) -> None:
    """Refuses columns by which most rows stand out.

    Args:
        found: Of columns that are released as they are.
        least: As of `rare`.

    Raises:
        ConfigurationError: There is one.
    """
    for names, share in found:
        if len(names) == 1 and share > IDENTIFYING:
            raise ConfigurationError(
                f'Column "{names[0]}" is insensitive, but fewer than {least} rows have the same value in '
                f"{percent(share)} of its rows: who knows a value finds its row, whatever the rest hides. List it "
                "under identifiers or quasi_identifiers; or, if nobody can know it of a person, as of a measure, add "
                "it to allow_unique."
            )


def check_persons(data: pa.Table, identifiers: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuses rows of which several are one person's: k and all models count rows.

    Args:
        data: The rows.
        identifiers: Columns that name a person.
        allowed: Those of which somebody has said that different persons share their values.

    Raises:
        ConfigurationError: An identifier occurs twice.
    """
    refuse_repeated(_repeated(data, [name for name in identifiers if name not in allowed]))


def refuse_repeated(found: Iterable[Repeated]) -> None:
    """Refuses identifiers of which a value has several rows.

    Raises:
        ConfigurationError: There is one.
    """
    for repeated in found:
        raise ConfigurationError(
            f"{repeated}: k would count rows, and k rows may be one person's. Keep one row of each person; or, if "
            "different persons have the same value, as of a family name, add it to allow_repeated."
        )


def _repeated(data: pa.Table, identifiers: Sequence[str]) -> Iterator[Repeated]:
    for name in identifiers:
        rows = np.bincount(_codes(data.column(name)))[1:]  # a row that lacks it is nobody's known
        several = int((rows > 1).sum())
        if several:
            yield Repeated(name, several, len(rows), int(rows.max()))


def warnings(data: pa.Table, insensitive: Sequence[str], sensitive: Sequence[str], least: int) -> list[str]:
    """What is to be said of columns that leave as they are, as sentences.

    Sensitive values are taken to be known to nobody, so of these only such are named as identify most rows.
    """
    texts = {name: pc.unique(data.column(name).cast(pa.string())).to_pylist() for name in sensitive}
    return warnings_of(texts, rare(data, insensitive, least), rare(data, sensitive, least), least)


def warnings_of(
    values: Mapping[str, Sequence[str | None]], insensitive: Iterable[Rare], sensitive: Iterable[Rare], least: int
) -> list[str]:
    """`warnings`, of what is known of the columns.

    Args:
        values: The distinct cells of each sensitive column, as text.
        insensitive: What is rare in insensitive columns.
        sensitive: What is rare in sensitive ones.
        least: As of `rare`.
    """
    found = []
    for name, texts in values.items():
        read = {" ".join(text.split()).casefold() for text in texts if text}
        if len(read) < sum(bool(text) for text in texts):
            found.append(
                f'"{name}" has values that people read as one, as they differ in blanks or capitals alone: models take '
                "them for several; write them alike"
            )
        if not all(texts):
            found.append(
                f'a missing value of "{name}" counts as one of its own: beside it, a single other one is known'
            )
    identifying = [each for each in sensitive if len(each.columns) == 1 and each.share > IDENTIFYING]
    return found + [
        f"{percent(share)} of the rows have {_listed(names)} that fewer than {least} rows have: who knows "
        f"{'it' if len(names) == 1 else 'them'} of a person finds the row, whatever k is"
        for names, share in (*insensitive, *identifying)
    ]


def doubts(data: pa.Table, roles: Roles, released: Sequence[str], least: int) -> list[str]:
    """All that the command refuses or warns of, as sentences for those who decide by themselves.

    Args:
        data: The rows.
        roles: Of their columns.
        released: Insensitive columns that leave as they are.
        least: As of `rare`.
    """
    persons = [
        f"{each}: k counts rows, and k rows may be one person's; keep one row of each person"
        for each in _repeated(data, roles.identifiers)
    ]
    return persons + warnings(data, released, roles.sensitive, least)


def percent(share: Fraction) -> str:
    """A share for people, never rounded to none or to all."""
    number = 100 * float(share)
    return "100 %" if share == 1 else f"{min(99.9, max(0.1, number)):.3g} %"


def _listed(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    if len(quoted) == 1:
        return f"a value of {quoted[0]}"
    return f"values of {enumeration(quoted)} together"


def _codes(cells: pa.ChunkedArray) -> NDArray[np.int64]:
    """Equal numbers for cells that are equal as text; 0 for those that are missing."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    gaps = missing(cells)
    encoded = cells.dictionary_encode().combine_chunks()
    texts = ["" if value is None else text_of(value) for value in encoded.dictionary.to_pylist()]
    _, of_value = np.unique(np.array([*texts, ""], object).astype(str), return_inverse=True)
    codes = np.asarray(of_value).reshape(-1)[encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)] + 1
    codes[gaps] = 0
    _, numbered = np.unique(np.append(codes, 0), return_inverse=True)
    return np.asarray(numbered).reshape(-1)[:-1].astype(np.int64)
