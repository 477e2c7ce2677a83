"""Scratch files: what is written comes back, and none is used after its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from crypto.primitives.scratch_file import ScratchFile
from tests.errors import fails


@pytest.mark.parametrize("sizes", [[1, 15, 16, 17, 0, 100]])
def test_a_scratch_file_gives_back_any_of_its_bytes(sizes: list[int]) -> None:
    file, random = ScratchFile(None, Randomness.from_seed(3).bytes(32), "lists", "memory"), np.random.default_rng(0)
    parts = [random.integers(0, 256, size, np.uint8) for size in sizes]
    places = [file.append(part) for part in parts]
    for place, part in zip(places, parts, strict=True):
        for start in range(0, len(part), 7):
            assert np.array_equal(file.read(place + start, len(part) - start), part[start:])
    file.close()


def test_a_closed_file_is_not_used_again(tmp_path: Path) -> None:
    """A thread that still writes when its job has ended must not hit another file of the same number."""
    file = ScratchFile(tmp_path, bytes(32), "lists", "memory")
    file.append(np.zeros(5, np.uint8))
    file.close()
    with fails("E700"):
        file.append(np.zeros(5, np.uint8))
    with fails("E700"):
        file.read(0, 5)
