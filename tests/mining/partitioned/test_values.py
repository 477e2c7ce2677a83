"""Results of kernels as bytes: the same value comes back, and nothing but values."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mining.partitioned.spark import worker
from mining.partitioned.spark.values import from_bytes, to_bytes
from mining.partitioned.spark.worker import in_pieces, joined


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "ünï", [], [1, [2, "a"]], (1, (2,)), np.int64(3), np.float64(2)])
def test_values(value: Any) -> None:
    found = from_bytes(to_bytes(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.empty(0, np.uint8), np.array(5, np.int32)])
def test_arrays(array: np.ndarray[Any, Any]) -> None:
    first, second = from_bytes(to_bytes((array, [array])))
    assert np.array_equal(first, array)
    assert (first.dtype, first.shape) == (array.dtype, array.shape)
    assert np.array_equal(second[0], array)


def test_texts() -> None:
    texts = pa.array(["left out", "a", "", "ünï"], pa.large_string())[1:]
    found, number = from_bytes(to_bytes((texts, 3)))
    assert (found.to_pylist(), found.type, number) == (["a", "", "ünï"], pa.large_string(), 3)


@pytest.mark.parametrize(("lengths", "data"), [([2, 1], b"ab"), ([3, -1], b"ab"), ([1, 1], b"\xc3\xbc"), ([0.5], b"a")])
def test_texts_that_are_none(lengths: list[Any], data: bytes) -> None:
    made_up = to_bytes([np.array(lengths), np.frombuffer(data, np.uint8)])
    (length,) = np.frombuffer(made_up[:8], np.uint64)
    made_up = made_up[:8] + made_up[8 : 8 + length].replace(b'{"list": ', b'{"texts":') + made_up[8 + length :]
    assert b'"texts"' in made_up
    with pytest.raises(ValueError, match="no result of a kernel"):
        from_bytes(made_up)


def test_nothing_else() -> None:
    for value in (object(), {"a": 1}, {1}, np.array([object()]), pa.array(["a", None], pa.large_string()), b"a"):
        with pytest.raises((TypeError, ValueError)):
            to_bytes(value)


def test_what_a_cluster_makes_up_is_refused() -> None:
    whole = to_bytes((np.arange(5), 1))
    for data in (b"", whole[:7], whole[:20], whole[:-1], pickle.dumps(print), b"\0" * 8, to_bytes(1)[:8] + b"}"):
        with pytest.raises(ValueError, match="no result of a kernel"):
            from_bytes(data)
    wrong = to_bytes([np.arange(3)]).replace(b"list", b"dict")
    with pytest.raises(ValueError, match="no result of a kernel"):
        from_bytes(wrong)


@pytest.mark.parametrize("length", [0, 1, 4, 5, 8, 9])
def test_a_value_that_is_long_comes_in_rows_that_are_not(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(worker, "PIECE", 4)
    rows = [(7, 3, bytes(range(length)), b"names"), (8, 0, b"next", b"")]
    pieces = [piece for row in rows for piece in in_pieces(*row)]
    assert all(len(value) <= 4 for _, _, value, _ in pieces)
    assert list(joined(pieces)) == rows
