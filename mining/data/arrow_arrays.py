"""Arrow arrays of numbers and texts, made of their memory.

`pyarrow.array`, `pyarrow.scalar` and `Array.to_numpy` first find out whether they are given something of pandas, and
import it for that wherever it is installed. That takes longer than the rest of a small job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
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
