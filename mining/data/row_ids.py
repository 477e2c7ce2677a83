"""Ids of rows: put into one form where a job asks for it, and encoded so that equal bytes mean equal ids.

Millions of ids stay in Arrow's buffers, some dozens of bytes each; only those that are asked for become byte strings.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
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


class Ids(Sequence[bytes], ABC):
    """The ids of rows as byte strings, by `encode_fields` of the UTF-8 cells, an injection; made as they are read."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: int) -> bytes: ...

    @overload
    def __getitem__(self, key: slice) -> list[bytes]: ...

    @abstractmethod
    def __getitem__(self, key: int | slice) -> bytes | list[bytes]: ...

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]

    @abstractmethod
    def empty(self) -> int:
        """How many rows have an empty cell in a column of the id."""

    def repeated(self) -> int:
        """How many rows have the id of an earlier one.

        Only ids whose hashes are not all different are compared: eight bytes a row instead of byte strings.
        """
        hashes = np.empty(len(self), np.int64)
        for places in _parts(len(self)):
            part = slice(places.start, places.stop)
            hashes[part] = _hashes(self[part])
        hashes.sort()
        alike = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
        del hashes
        if not len(alike):
            return 0
        seen: set[bytes] = set()
        repeated = 0
        for places in _parts(len(self)):
            found = self[places.start : places.stop]
            doubtful = np.flatnonzero(np.isin(_hashes(found), alike)).tolist()
            seen.update(found[place] for place in doubtful)
            repeated += len(doubtful)
        return repeated - len(seen)


class RowIds(Ids):
    """The ids of rows in memory.

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

    def empty(self) -> int:
        """How many rows have an empty cell in a column of the id."""
        return sum(
            int(np.logical_or.reduce([_lengths(column) == 0 for column in self._normalised(places)]).sum())
            for places in _parts(len(self))
        )

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


def check_has_ids(columns: Sequence[str]) -> None:
    """Refuses a table without ids.

    Args:
        columns: The names of those of ids.

    Raises:
        InputDataError: There is none.
    """
    if not columns:
        raise InputDataError(
            "the dataset has no column of ids, by which rows are found at all parties; name it by id in the "
            "dataset's section."
        )


def checked_ids(
    cells: Sequence[pa.Array], columns: Sequence[str], normalisation: IdNormalisation = AS_THEY_ARE
) -> RowIds:
    """The ids of rows in memory, all distinct.

    Args:
        cells: By column of the id, the cells of all rows, as `RowIds` takes them.
        columns: The names of these columns, for errors.
        normalisation: What is done to cells first.

    Raises:
        InputDataError: As of `check_ids`.
    """
    ids = RowIds(cells, normalisation)
    check_ids(ids, columns, normalisation)
    return ids


def check_ids(ids: Ids, columns: Sequence[str], normalisation: IdNormalisation) -> None:
    """Refuses ids that do not tell rows apart.

    Args:
        ids: Of all rows.
        columns: The names of their columns, for errors.
        normalisation: What was done to cells first.

    Raises:
        InputDataError: Rows have an empty cell in a column of the id, or share an id. The sentence counts them and
            names no id.
    """
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


def _hashes(ids: Sequence[bytes]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, ids), np.int64, len(ids))


def _folded(text: str) -> str:
    """Unicode's canonical caseless form, composed: folding may take a text out of its normal form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
