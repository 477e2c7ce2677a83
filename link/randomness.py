"""What a Session asks of its source of randomness; `crypto.primitives.randomness` is the one implementation."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class RandomStream(Protocol):
    """A keystream that belongs to one purpose; equal labels under one source give equal streams."""

    def derive(self, *label: str | int | bytes) -> RandomStream:
        """An independent stream for `label`, whatever has been drawn from this one."""

    def bytes(self, size: int) -> bytes:
        """The next `size` bytes."""

    def uint64(self, size: int) -> NDArray[np.uint64]:
        """The next `size` words, each uniform over 64 bits."""

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound)."""

    def permutation(self, size: int) -> NDArray[np.int64]:
        """A uniform permutation of 0 … size − 1."""
