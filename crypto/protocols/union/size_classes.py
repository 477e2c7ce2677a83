"""Size classes: the few numbers to which the lengths of lists are rounded up, so that a length reveals little of a set.

Class 0 holds 64 elements, since a smaller one would reveal too much of few elements. From there on each doubling has as
many classes as `to_a_doubling` says: `SETS` grow 64, 128, 256, …, and `LISTS` 64, 80, 96, 112, 128, 160, ….

A job's bound is rounded up to a class, too. Else who proposes jobs with one bound after the other would learn
exactly, from which of them end with an error, how much the largest party holds.

Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crypto.params import STANDARD_128

LEAST: Final = 64  # elements of the smallest class


@dataclass(frozen=True)
class SizeClasses:
    """A ladder of sizes up to the largest that may be.

    Attributes:
        to_a_doubling: Classes between a size and twice that size: a power of two, at most 64.
        most: The largest size, itself that of a class.
    """

    to_a_doubling: int
    most: int

    def place(self, size: int) -> int:
        """The place of the least class that holds so many elements; of what no class holds, `beyond`."""
        if size > self.most:
            return self.beyond
        place = self.to_a_doubling * (max(size, LEAST).bit_length() - LEAST.bit_length())
        while self.size(place) < size:
            place += 1
        return place

    def size(self, place: int) -> int:
        """How many elements the class at a place holds."""
        doublings, step = divmod(place, self.to_a_doubling)
        return (LEAST + step * LEAST // self.to_a_doubling) << doublings

    def rounded(self, size: int) -> int:
        """How many elements the class of a size holds."""
        return self.size(self.place(size))

    @property
    def beyond(self) -> int:
        """The place after the last class, for what is too large."""
        return self.place(self.most) + 1

    def of(self, held: int, bound: int | None) -> int:
        """What a party says of its own number of elements; the largest of all parties' is the public one.

        Returns:
            The place of its class where the job has no bound; `beyond` where it holds more than the class of the bound,
            or of the most that there may be.
        """
        if held > (self.most if bound is None else self.rounded(bound)):
            return self.beyond
        return self.place(held) if bound is None else 0

    def capacity(self, largest: int, bound: int | None) -> int:
        """How many elements every list can hold.

        Args:
            largest: What `of` says, the largest of all parties'.
            bound: As given to `of`.
        """
        return self.size(largest) if bound is None else self.rounded(bound)


SETS: Final = SizeClasses(1, STANDARD_128.max_elements)
LISTS: Final = SizeClasses(4, STANDARD_128.max_elements)


def over_bound(classes: SizeClasses, bound: int | None, key: str) -> str:
    """The end of a sentence on what is more than a list may hold, and what to do.

    Args:
        classes: Of the lists.
        bound: The job's bound.
        key: The job's key that sets it.
    """
    if bound is None:
        return f"{classes.most}, the most that there may be"
    allowed = classes.rounded(bound)
    of_class = "" if allowed == bound else f", to which its bound of {bound} is rounded up"
    return f"{allowed}{of_class}; raise {key} in the job"
