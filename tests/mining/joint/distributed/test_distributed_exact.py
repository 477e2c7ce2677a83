"""The whole of what a run opens against its budget, by the exact laws of the noise: no bound of the accountant is used.

A record changes the number of rows by 1, and M sums of each length by 1. The privacy loss of one such sum has a law
that follows from the noise that colluders do not know; losses of independent sums add up, and their law is a
convolution. Losses are rounded up to a grid, so what is found is never too small.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive

from mining.joint.distributed.budget import (
    SumNoise,
    length_noise,
    rows_noise,
    selection,
    sizes_noise,
)
from mining.joint.distributed.parameters import DistributedMining, NoiseLaw

pytestmark = pytest.mark.turn(3)

GRID = 1e-4
SIZE = 1 << 18  # losses up to 13 either way

Vector = NDArray[np.float64]


def hidden(noise: SumNoise, honest: int) -> Vector:
    """The law of the noise that the honest parties add, around 0."""
    variance = float(noise.variance)
    reach = int(14 * math.sqrt(variance * honest)) + 10
    numbers = np.arange(-reach, reach + 1)
    if noise.law == "skellam":
        return np.asarray(ive(np.abs(numbers), variance * honest))
    one = np.exp(-(numbers**2) / (2 * variance))
    one /= one.sum()
    law = one
    for _ in range(honest - 1):
        law = np.convolve(law, one, mode="same")
    return law


def transformed(law: Vector) -> NDArray[np.complex128]:
    """The law of the loss, log P(x)/P(x − 1), as a characteristic function."""
    here, shifted = law[1:], law[:-1]
    seen = (here > 1e-40) & (shifted > 1e-40)
    places = np.ceil(np.log(here[seen] / shifted[seen]) / GRID).astype(np.int64)
    masses = np.bincount(places % SIZE, here[seen], SIZE)
    return np.asarray(np.fft.rfft(masses))


def exact_delta(task: DistributedMining, parties: int) -> float:
    """δ of all releases together for the task's ε, but for what names of items of one record add."""
    honest = parties - task.colluding
    total = transformed(hidden(rows_noise(task, parties), honest))
    for length in range(1, task.max_length + 1):
        total *= transformed(hidden(sizes_noise(task, parties, length), honest)) ** (1 if length == 1 else 2)
        most = (30, 40, 30, 15)[length - 1]
        total *= transformed(hidden(length_noise(task, parties, length, most), honest)) ** most
    if (chosen := selection(task, parties)) is not None:  # each party's own noise
        own = SumNoise("discrete-gaussian", chosen.variance, 1)
        total *= transformed(hidden(own, 1)) ** chosen.most
    law = np.maximum(np.fft.irfft(total, SIZE), 0)
    losses = np.where(np.arange(SIZE) < SIZE // 2, np.arange(SIZE), np.arange(SIZE) - SIZE) * GRID
    assert law.sum() == pytest.approx(1, abs=1e-9)
    beyond = losses > float(task.epsilon)
    return float(law[beyond] @ -np.expm1(float(task.epsilon) - losses[beyond]))


@pytest.mark.parametrize(("parties", "colluding"), [(3, 1), (3, 0), (2, 1), (5, 3)])
@pytest.mark.parametrize("catalogue", [("a", "b"), None])
@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
def test_all_releases_together_keep_to_the_budget(
    noise: NoiseLaw, catalogue: tuple[str, ...] | None, parties: int, colluding: int
) -> None:
    task = DistributedMining(
        Decimal(2),
        Decimal("1e-6"),
        Decimal("0.01"),
        ("a",),
        max_length=4,
        colluding=colluding,
        noise=noise,
        catalogue=catalogue,
    )
    assert 1e-8 < exact_delta(task, parties) <= 1e-6 / (1 if catalogue else 2)


@pytest.mark.parametrize("epsilon", ["0.1", "2", "8"])
def test_names_of_one_record_are_opened_with_the_rest_of_delta(epsilon: str) -> None:
    task = DistributedMining(Decimal(epsilon), Decimal("1e-6"), Decimal("0.01"), ("a",), colluding=1)
    chosen = selection(task, 3)
    assert chosen is not None
    law = hidden(SumNoise("discrete-gaussian", chosen.variance, 1), 1)
    numbers = np.arange(len(law)) - len(law) // 2
    one = float(law[1 + numbers >= chosen.threshold].sum())
    assert 1e-7 < -math.expm1(chosen.most * math.log1p(-one)) <= 0.5e-6
