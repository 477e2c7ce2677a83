"""Ids of rows: put into one form where a job asks for it, and encoded so that equal bytes mean equal ids.

Millions of ids stay in Arrow's buffers, some dozens of bytes each; only those that are asked for become byte strings.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crypto.primitives.hashing import encode_fields
from link.errors import InputDataError

Case = Literal["keep", "fold"]
Unicode = Literal["none", "NFC"]

AT_ONCE: Final = 1 << 17  # ids that are byte strings at a time
_LENGTH_BYTES: Final = 8  # as of `crypto.primitives.hashing.encode_fields`


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


class RowIds(Sequence[bytes]):
    """The ids of rows as byte strings, `encode_fields` of the UTF-8 cells, which is injective; made as they are read.

    Args:
        cells: By column of the id, the cells of all rows: Arrow's large strings without nulls, at least one column.
        normalisation: What is done to cells first.
    """

    __slots__ = ("_cells", "_normalisation")

    def __init__(self, cells: Sequence[pa.Array], normalisation: IdNormalisation = AS_THEY_ARE) -> None:
        self._cells, self._normalisation = tuple(cells), normalisation

    def __len__(self) -> int:
        return len(self._cells[0])

    @overload
    def __getitem__(self, key: int) -> bytes: ...

    @overload
    def __getitem__(self, key: slice) -> list[bytes]: ...

    def __getitem__(self, key: int | slice) -> bytes | list[bytes]:
        if isinstance(key, slice):
            found: list[bytes] = _encoded(self._normalised(range(len(self))[key])).to_pylist()
            return found
        texts = [self._normalisation.apply(column[key].as_py()) for column in self._cells]
        return encode_fields(*[text.encode() for text in texts])

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]

    def empty(self) -> int:
        """How many rows have an empty cell in a column of the id."""
        return sum(
            int(np.logical_or.reduce([_lengths(column) == 0 for column in self._normalised(places)]).sum())
            for places in _parts(len(self))
        )

    def repeated(self) -> int:
        """How many rows have the id of an earlier one.

        Only ids whose hashes are not all different are compared: eight bytes a row instead of byte strings.
        """
        hashes = np.empty(len(self), np.int64)
        for places in _parts(len(self)):
            part = slice(places.start, places.stop)
            hashes[part] = np.fromiter(map(hash, self[part]), np.int64, len(places))
        alike = _values_of_several(hashes)
        if not len(alike):
            return 0
        seen: set[bytes] = set()
        repeated = 0
        for places in _parts(len(self)):
            part = slice(places.start, places.stop)
            doubtful = np.flatnonzero(np.isin(hashes[part], alike)).tolist()
            found = self[part] if doubtful else []
            seen.update(found[place] for place in doubtful)
            repeated += len(doubtful)
        return repeated - len(seen)

    def _normalised(self, places: range) -> list[pa.Array]:
        """The cells of some rows, in the form by which they are compared."""
        if places.step == 1:
            cells = [column.slice(places.start, len(places)) for column in self._cells]
        else:
            numbers = pa.array(places, pa.int64())
            cells = [column.take(numbers) for column in self._cells]
        if self._normalisation.is_identity:
            return cells
        apply = self._normalisation.apply
        return [pa.array([apply(text) for text in column.to_pylist()], pa.large_string()) for column in cells]


def checked_ids(
    cells: Sequence[pa.Array], columns: Sequence[str], normalisation: IdNormalisation = AS_THEY_ARE
) -> RowIds:
    """The ids of rows, all distinct.

    Args:
        cells: By column of the id, the cells of all rows, as `RowIds` takes them.
        columns: The names of these columns, for errors.
        normalisation: What is done to cells first.

    Raises:
        InputDataError: Rows have an empty cell in a column of the id, or share an id. The sentence counts them and
            names no id.
    """
    ids = RowIds(cells, normalisation)
    named = " and ".join(f'"{column}"' for column in columns)
    empty = ids.empty()
    if empty:
        what = "1 row has" if empty == 1 else f"{empty} rows have"
        raise InputDataError(f"{what} no id in column {named}; every row needs one.")
    repeated = ids.repeated()
    if repeated:
        what = "1 row has the id" if repeated == 1 else f"{repeated} rows have the ids"
        since = "" if normalisation.is_identity else " once ids are in the form that the job's [align] asks for"
        raise InputDataError(f"{what} of an earlier row in column {named}{since}; every row needs an id of its own.")
    return ids


def _parts(number: int) -> Iterator[range]:
    for start in range(0, number, AT_ONCE):
        yield range(start, min(start + AT_ONCE, number))


def _encoded(cells: Sequence[pa.Array]) -> pa.Array:
    """`encode_fields` of the cells of each row: Arrow's large binary."""
    parts: list[pa.Array] = []
    for column in cells:
        lengths = pa.py_buffer(_lengths(column).astype(">u8"))
        prefix = pa.Array.from_buffers(pa.binary(_LENGTH_BYTES), len(column), [None, lengths])
        parts += [prefix.cast(pa.large_binary()), column.cast(pa.large_binary())]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    """Bytes of each cell."""
    lengths: NDArray[np.int64] = pc.binary_length(column).to_numpy(zero_copy_only=False)
    return lengths


def _values_of_several(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers that occur more than once."""
    ordered = np.sort(numbers)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _folded(text: str) -> str:
    """Unicode's canonical caseless form, composed: folding may take a text out of its normal form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
