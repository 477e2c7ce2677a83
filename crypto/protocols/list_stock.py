"""A party's lists of unions to come, encrypted while it has nothing else to do: the offline part of a secure set union.

The first layer of a party's own list waits for nobody: it takes a fresh key, the elements, and private fakes. Sets come
again from job to job, or parts of them where a threshold rises, so a stock keeps every element that it met under the
key of the next union, and fakes beside. A union either takes all that it needs, with the key, or nothing; whatever it
takes and whatever it leaves under that key is forgotten at once, so no key and no fake serves twice. Nothing of it is
ever written down.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives import blocks
from crypto.primitives.commutative import CommutativeKey
from crypto.primitives.randomness import Randomness
from crypto.primitives.ristretto255 import POINT_BYTES

MOST_BLOCKS: Final = 1 << 15  # of all tuples of one width: about 2 s to make, and 5 MB beside the elements
WIDEST: Final = 8  # blocks of a tuple that is kept in stock
_BATCH_BLOCKS: Final = 128  # about 5 ms


@dataclass(frozen=True)
class PreparedList:
    """As many tuples as a set may have elements: the set, and fakes in the place of what it has less.

    Attributes:
        key: Under which they are, and nothing else is.
        points: Shape (capacity, b, 32), in no secret order.
    """

    key: CommutativeKey
    points: NDArray[np.uint8]


@dataclass
class _Shelf:
    """What is made for the next union of one width, and what is to be.

    Attributes:
        key: Of that union.
        elements: That are wanted, those of the latest set last.
        latest: How many these are.
        number: Of fakes that are wanted.
        points: Of elements that are wanted, under the key.
        fakes: Points of fakes, under the key.
    """

    key: CommutativeKey = field(default_factory=lambda: CommutativeKey.generate(Randomness.from_os()))
    elements: dict[bytes, None] = field(default_factory=dict)
    latest: int = 0
    number: int = 0
    points: dict[bytes, bytes] = field(default_factory=dict)
    fakes: list[bytes] = field(default_factory=list)

    def want(self, elements: Sequence[bytes], capacity: int, most: int) -> None:
        """Sees to it that this set could be taken, and, as far as there is room, any part of it and earlier sets."""
        for element in elements:
            self.elements.pop(element, None)
        self.elements.update(dict.fromkeys(elements))
        self.latest = len(elements)
        spare = min(max(self.number, capacity), most - len(self.elements))
        self.number = max(capacity - len(elements), spare)
        for oldest in list(islice(self.elements, max(0, len(self.elements) + self.number - most))):
            del self.elements[oldest]
            self.points.pop(oldest, None)
        del self.fakes[self.number :]

    def lacking(self, most: int) -> tuple[list[bytes], int]:
        """Up to so many elements, or else up to so many fakes: first of the latest set, then fakes, then the others."""
        newest_first = reversed(self.elements)
        of_latest = list(islice((e for e in islice(newest_first, self.latest) if e not in self.points), most))
        if of_latest or len(self.fakes) < self.number:
            return of_latest, 0 if of_latest else min(most, self.number - len(self.fakes))
        return list(islice((e for e in newest_first if e not in self.points), most)), 0


class ListStock:
    """Elements of earlier unions and fakes, of each width under the key of one union. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shelves: dict[int, _Shelf] = {}

    def take(self, elements: Sequence[bytes], capacity: int, width: int) -> PreparedList | None:
        """The list of one union, and of no other.

        Args:
            elements: The party's set, each element once.
            capacity: As many tuples as it needs, public.
            width: Blocks of each.

        Returns:
            None if an element or a fake is lacking. That much can be seen from the time that the list takes, but not
            how many are.
        """
        most = MOST_BLOCKS // width
        if width > WIDEST or capacity > most:
            return None
        with self._lock:
            shelf = self._shelves.setdefault(width, _Shelf())
            shelf.want(elements, capacity, most)
            missing = capacity - len(elements)
            if len(shelf.fakes) < missing or not shelf.points.keys() >= set(elements):
                return None
            self._shelves[width] = _Shelf(elements=shelf.elements, latest=shelf.latest, number=shelf.number)
        joined = b"".join([*map(shelf.points.__getitem__, elements), *shelf.fakes[:missing]])
        return PreparedList(shelf.key, np.frombuffer(joined, np.uint8).reshape(capacity, width, POINT_BYTES))

    def make(self) -> bool:
        """Adds a little of what is lacking, with randomness of the operating system; False where nothing was."""
        lacking = self._lacking()
        if lacking is None:
            return False
        width, shelf, elements, number = lacking
        made = blocks.encode(elements, width) if elements else blocks.fake(Randomness.from_os(), number, width)
        joined = made.reshape(-1, blocks.BLOCK_BYTES)
        points = shelf.key.encrypt_blocks(joined, come_again=bool(elements)).tobytes()
        step = width * POINT_BYTES
        rows = [points[start : start + step] for start in range(0, len(points), step)]
        with self._lock:  # a shelf that was taken meanwhile is nobody's any more, and so is what is added to it
            if elements:
                made_of = zip(elements, rows, strict=True)
                shelf.points.update((element, row) for element, row in made_of if element in shelf.elements)
            else:
                shelf.fakes.extend(rows)
        return True

    def _lacking(self) -> tuple[int, _Shelf, list[bytes], int] | None:
        """A width, its shelf, and some of what it lacks: elements, or a number of fakes."""
        with self._lock:
            for width, shelf in self._shelves.items():
                elements, number = shelf.lacking(max(1, _BATCH_BLOCKS // width))
                if elements or number:
                    return width, shelf, elements, number
        return None
