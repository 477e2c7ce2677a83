"""Ids of rows: put into one form where a job asks for it, and encoded so that equal bytes mean equal ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from crypto.primitives.hashing import encode_fields
from link.errors import InputDataError

Case = Literal["keep", "fold"]
Unicode = Literal["none", "NFC"]


@dataclass(frozen=True, slots=True)
class IdNormalisation:
    """What is done to each id, or to each column of a composite one, before ids are compared; by default nothing.

    Attributes:
        trim: Whether white space at both ends is removed.
        case: `fold` takes letters for equal that differ in case only (Unicode's full case folding).
        unicode: `NFC` takes texts for equal that are canonically equivalent, such as é in one character and in two.
    """

    trim: bool = False
    case: Case = "keep"
    unicode: Unicode = "none"

    def apply(self, text: str) -> str:
        """The form of an id by which it is compared."""
        if self.unicode == "NFC":
            text = unicodedata.normalize("NFC", text)
        if self.case == "fold":
            text = _folded(text) if self.unicode == "NFC" else text.casefold()
        return text.strip() if self.trim else text

    @property
    def is_identity(self) -> bool:
        """Whether ids stay as they are."""
        return self == AS_THEY_ARE


AS_THEY_ARE: Final = IdNormalisation()


def encoded_ids(
    cells: Sequence[Sequence[str]], columns: Sequence[str], normalisation: IdNormalisation = AS_THEY_ARE
) -> list[bytes]:
    """The ids of rows as byte strings: `encode_fields` of the UTF-8 cells, which is injective.

    Args:
        cells: By column of the id, the cells of all rows.
        columns: The names of these columns, for errors.
        normalisation: What is done to cells first.

    Returns:
        An id for each row, all distinct.

    Raises:
        InputDataError: Rows have an empty cell in a column of the id, or share an id. The sentence counts them and
            names no id.
    """
    if not normalisation.is_identity:
        cells = [[normalisation.apply(cell) for cell in column] for column in cells]
    named = " and ".join(f'"{column}"' for column in columns)
    rows = list(zip(*cells, strict=True))
    empty = sum(not all(row) for row in rows)
    if empty:
        what = "1 row has" if empty == 1 else f"{empty} rows have"
        raise InputDataError(f"{what} no id in column {named}; every row needs one.")
    encoded = [encode_fields(*[cell.encode() for cell in row]) for row in rows]
    repeated = len(encoded) - len(set(encoded))
    if repeated:
        what = "1 row has the id" if repeated == 1 else f"{repeated} rows have the ids"
        since = "" if normalisation.is_identity else " once ids are in the form that the job's [align] asks for"
        raise InputDataError(f"{what} of an earlier row in column {named}{since}; every row needs an id of its own.")
    return encoded


def _folded(text: str) -> str:
    """Unicode's canonical caseless form, composed: folding may take a text out of its normal form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
