"""Results of kernels as bytes that are safe to read: numbers, texts, arrays of them, and lists and tuples of these."""

from __future__ import annotations

import io
import json
import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa

from mining.data.arrow_arrays import bytes_of, lengths_of, texts_of

_HEAD: Final = struct.Struct("<Q")


def to_bytes(value: Any) -> bytes:
    """A result as bytes.

    Raises:
        TypeError: It is of another type.
    """
    arrays: list[bytes] = []
    tree = json.dumps(_tree(value, arrays)).encode()
    return b"".join([_HEAD.pack(len(tree)), tree, *arrays])


def from_bytes(data: bytes) -> Any:
    """What `to_bytes` has written; nothing in it can run code.

    Raises:
        ValueError: It is cut or something else.
    """
    try:
        (length,) = _HEAD.unpack_from(data)
        tree = json.loads(data[_HEAD.size : _HEAD.size + length])
        rest = io.BytesIO(data[_HEAD.size + length :])
        return _value(tree, rest)
    except Exception as error:  # numpy and json fail in many ways where bytes are wrong
        raise ValueError("this is no result of a kernel") from error


def _tree(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        written = io.BytesIO()
        np.save(written, np.asarray(value), allow_pickle=False)
        arrays.append(written.getvalue())
        return {"array": isinstance(value, np.generic)}
    if isinstance(value, pa.Array) and pa.types.is_large_string(value.type) and not value.null_count:
        parts = (lengths_of(value).astype(np.uint32), np.frombuffer(bytes_of(value), np.uint8))
        return {"texts": [_tree(part, arrays) for part in parts]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_tree(each, arrays) for each in value]}
    raise TypeError(f"a kernel on Spark gives numbers, texts and arrays, not {type(value).__name__}")


def _value(tree: Any, rest: io.BytesIO) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, inner),) = tree.items()
    if kind == "array":
        array = np.load(rest, allow_pickle=False)
        return array[()] if inner else array
    found = [_value(each, rest) for each in inner]
    if kind == "texts":
        lengths, data = found
        texts = texts_of(lengths.astype(np.int64), data.tobytes())
        texts.validate(full=True)
        return texts
    return {"list": list, "tuple": tuple}[kind](found)
