"""Values as bytes: read as they were, equal for equal values, and nothing else is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from link.encoding.values import pack, unpack

KINDS = ("i1", "u2", "i4", "i8", "u8", "?")
ARRAYS = st.sampled_from(KINDS).flatmap(lambda kind: arrays(kind, array_shapes(min_dims=1, max_dims=3, min_side=0)))
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | ARRAYS
VALUES = st.recursive(LEAVES, lambda parts: st.lists(parts, max_size=4).map(tuple), max_leaves=8)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and (one == other).all())
    return type(one) is type(other) and bool(one == other)


@given(VALUES)
def test_what_was_packed_is_read_as_it_was(value: Any) -> None:
    assert same(unpack(pack(value)), value)
    assert pack(unpack(pack(value))) == pack(value)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b'["b",3]\nab',
        b'["b",-1]\n',
        b'["b",true]\n',
        b'["a","|O",[1]]\n12345678',
        b'["a","<i8",[2]]\n12345678',
        b'["t",[1,["s"]]]\n',
        b"1\nx",
        b"1.5\n",
    ],
)
def test_cut_or_foreign_bytes_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="no packed value"):
        unpack(packed)


@pytest.mark.parametrize("value", [1.5, {"a": 1}, np.array([1.5]), np.array(["a"])])
def test_what_has_no_form_is_not_packed(value: Any) -> None:
    with pytest.raises(TypeError):
        pack(value)
