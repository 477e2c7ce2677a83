"""Arrow arrays of numpy's memory are those that pyarrow makes itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from mining.data import arrow_arrays

NUMBERS = (np.arange(9, dtype=np.int32), np.arange(9)[::2], np.array([0.5, np.nan, np.inf]), np.empty(0, np.int64))
WITHOUT_PANDAS = """\
import sys
import numpy as np
import pyarrow.compute as pc
from mining.data.arrow_arrays import as_numpy, lists, numbers, text, texts, truths
found = lists(np.array([0, 2]), texts(["b", "a"]).take(numbers(np.array([1, 0]))))
print(pc.binary_join(found, text(" ")).filter(truths(np.array([True]))).to_pylist(), as_numpy(found.offsets))
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("values", NUMBERS, ids=str)
def test_numbers(values: NDArray[Any]) -> None:
    made = arrow_arrays.numbers(values)
    made.validate(full=True)
    assert made.type == pa.array(values).type
    for column in (made, pa.chunked_array([made[:1], made[1:]]), pa.chunked_array([made])):
        np.testing.assert_array_equal(arrow_arrays.as_numpy(column), values)


@pytest.mark.parametrize("every", [1, 2, 100])
def test_numbers_that_are_missing(every: int) -> None:
    values, missing = np.arange(20), np.arange(20) % every == every - 1
    assert arrow_arrays.numbers(values, missing).equals(pa.array(values, mask=missing))


def test_truth_values() -> None:
    values = np.arange(20) % 3 == 0
    assert arrow_arrays.truths(values).equals(pa.array(values))


@pytest.mark.parametrize("values", [[], [""], ["bread", "", "café", "\N{GRINNING FACE}", "a\0b"]])
def test_texts(values: list[str]) -> None:
    made = arrow_arrays.texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))
    assert [arrow_arrays.text(value) for value in values] == [pa.scalar(value) for value in values]


def test_texts_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_arrays, "MOST_BYTES", 3)
    with pytest.raises(OverflowError, match="2 GiB"):
        arrow_arrays.texts(["ab", "cd"])


def test_lists() -> None:
    made = arrow_arrays.lists(np.array([0, 2, 2, 3]), arrow_arrays.texts(["a", "b", "c"]))
    made.validate(full=True)
    assert made.equals(pa.array([["a", "b"], [], ["c"]]))


def test_pandas_is_not_imported() -> None:
    """Though it is installed, and pyarrow imports it for most of what it is given."""
    ran = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=True, capture_output=True, text=True)
    assert ran.stdout == "['a b'] [0 2]\nFalse\n"
