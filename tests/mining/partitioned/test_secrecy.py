"""No kernel takes a key to a cluster."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from mining.counting import ItemsetCounts
from mining.data.transactions import Transactions
from mining.partitioned.kernels import PairCounts, longest_row
from mining.partitioned.runner import Anywhere
from mining.partitioned.spark.secrecy import check_public
from tests.errors import fails


@pytest.mark.parametrize(
    "kernel",
    [
        Transactions.item_counts,
        longest_row,
        PairCounts(0, 3),
        partial(longest_row),
        ItemsetCounts([np.array([[0, 1]], np.int32)]),
        Anywhere(PairCounts(0, 3)),
    ],
)
def test_public_kernels(kernel: Any) -> None:
    check_public(kernel)


def test_secrets_stay() -> None:
    for kernel in (partial(longest_row, b"key"), Anywhere(partial(longest_row, [{"key": b"secret"}]))):
        with fails("E100"):
            check_public(kernel)
