"""No kernel takes a key to a cluster but those of the noise of rows that lie there."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.sets.padding import PaddingAndSampling
from mining.counting import ItemsetCounts
from mining.data.transactions import Transactions
from mining.joint.hybrid.own_records import PerturbedRows, SummedReports
from mining.partitioned.kernels import PairCounts, longest_row
from mining.partitioned.noise_key import NoiseKey
from mining.partitioned.random_groups import RandomGroups
from mining.partitioned.runner import Anywhere
from mining.partitioned.spark.secrecy import takes_noise
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
    assert not takes_noise(kernel)


def test_keys_of_noise_are_told() -> None:
    mechanism = PaddingAndSampling(3, 1.0, 1, oracle="grr")
    assert len(mechanism.fingerprint) == 16  # public bytes, which it keeps
    perturbed = PerturbedRows(mechanism, None, 0, NoiseKey(bytes(32)))
    groups = RandomGroups.drawn([1, 2], Randomness.from_seed(1))
    for kernel in (perturbed, SummedReports(perturbed), Anywhere(partial(longest_row, groups))):
        assert takes_noise(kernel)
        assert bytes(32).hex() not in repr(kernel)


def test_other_secrets_stay() -> None:
    key = NoiseKey(bytes(32))
    for kernel in (partial(longest_row, b"key"), Anywhere(partial(longest_row, [key, {"key": b"secret"}]))):
        with fails("E100"):
            takes_noise(kernel)
