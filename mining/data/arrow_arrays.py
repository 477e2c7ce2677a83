"""Arrow arrays of numbers and texts, made of their memory.

`pyarrow.array`, `pyarrow.scalar` and `Array.to_numpy` first find out whether they are given something of pandas, and
import it for that wherever it is installed. That takes longer than the rest of a small job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_BYTES: Final = (1 << 31) - 1  # of all texts of an Arrow string array together
_KINDS: Final = {  # `to_pandas_dtype` of pyarrow 25 imports pandas, too
    pa.from_numpy_dtype(kind): kind
    for kind in map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))
}


def numbers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers of their own type, shape (n,); null where they are missing."""
    known = None if missing is None or not missing.any() else _bits(~missing)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(np.ascontiguousarray(values))])


def truths(values: NDArray[np.bool_]) -> pa.BooleanArray:
    """Truth values, shape (n,)."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def texts(values: Iterable[str]) -> pa.StringArray:
    """Texts.

    Raises:
        OverflowError: Together they have 2 GiB or more.
    """
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > MOST_BYTES:
        raise OverflowError("the texts of one column have 2 GiB or more")
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))
    )


def text(value: str) -> pa.StringScalar:
    """A text that functions of Arrow take beside arrays."""
    return texts([value])[0]


def lists(offsets: NDArray[np.integer], values: pa.Array) -> pa.ListArray:
    """Lists of values, which stand one after the other; n + 1 offsets say where each list begins."""
    return pa.ListArray.from_arrays(numbers(offsets.astype(np.int32)), values)


def as_numpy(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column without nulls."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    read: NDArray[Any] = np.frombuffer(whole.buffers()[1], _KINDS[whole.type])
    return read[whole.offset : whole.offset + len(whole)]


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def lengths_of(texts: pa.Array) -> NDArray[np.int64]:
    """Bytes of each of some texts, Arrow's large strings without nulls."""
    return np.asarray(pc.binary_length(texts).to_numpy(zero_copy_only=False), np.int64)


def bytes_of(texts: pa.Array) -> memoryview:
    """The bytes of all of some texts, one after the other."""
    _, _, data = texts.buffers()
    if data is None or not len(texts):
        return memoryview(b"")
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(offsets[0]) : int(offsets[-1])]


def texts_of(lengths: NDArray[np.int64], data: bytes | memoryview) -> pa.Array:
    """Texts by the bytes of each, and the bytes of all: Arrow's large strings, whose bytes nobody has looked at."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] != len(data):
        raise ValueError("the texts have other lengths than their bytes")
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))
