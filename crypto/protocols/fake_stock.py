"""A stock of private fakes for unions to come, made while a party has nothing else to do.

A private fake says nothing of the set that it fills up, so it can be drawn and embedded before there is one. In a union
it then takes one multiplication, as an element does that was embedded before, so that the time of the first layer says
less of how many there are of each. No fake is taken twice, and none is ever written down.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives import blocks
from crypto.primitives.embedding import embed
from crypto.primitives.randomness import Randomness
from crypto.primitives.ristretto255 import POINT_BYTES

MOST_BLOCKS: Final = 1 << 14  # of tuples of one width: .3 s to make, 512 KiB
WIDEST: Final = 8  # blocks of a tuple that is kept in stock
_BATCH_BLOCKS: Final = 256  # about 5 ms


class FakeStock:
    """As many fakes of each width as the largest union so far asked for. Calls may be made from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[int, int] = {}
        self._ready: dict[int, NDArray[np.uint8]] = {}

    def take(self, number: int, width: int) -> NDArray[np.uint8]:
        """Fakes for one union, and for no other.

        Args:
            number: How many are of use.
            width: Blocks of each.

        Returns:
            Points, shape (m, width, 32) with m ≤ number.
        """
        if width > WIDEST:
            return _none(width)
        with self._lock:
            self._wanted[width] = max(self._wanted.get(width, 0), min(number, MOST_BLOCKS // width))
            ready = self._ready.get(width, _none(width))
            self._ready[width] = ready[number:]
            return ready[:number]

    @property
    def full(self) -> bool:
        """Whether there is as much as was ever asked for."""
        return self._lacking() is None

    def make(self) -> None:
        """Adds some that are lacking, with randomness of the operating system."""
        lacking = self._lacking()
        if lacking is None:
            return
        number, width = lacking
        number = min(number, max(1, _BATCH_BLOCKS // width))
        drawn = blocks.fake(Randomness.from_os(), number, width)
        points = embed(drawn.reshape(-1, blocks.BLOCK_BYTES), come_again=False).reshape(number, width, POINT_BYTES)
        with self._lock:
            self._ready[width] = np.concatenate([self._ready.get(width, _none(width)), points])

    def _lacking(self) -> tuple[int, int] | None:
        """How many are lacking of a width of which some are."""
        with self._lock:
            for width, wanted in self._wanted.items():
                if (number := wanted - len(self._ready.get(width, ()))) > 0:
                    return number, width
        return None


def _none(width: int) -> NDArray[np.uint8]:
    return np.empty((0, width, POINT_BYTES), np.uint8)
