"""The lists of a secure set union before the first key touches them: public sizes, fakes, encoding.

Pure functions. A party's list holds its elements, the fakes that it has in common with each peer, and private fakes up
to a length that everybody knows beforehand, all encoded as tuples of equally many blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.primitives import blocks
from crypto.primitives.commutative import CommutativeKey
from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from crypto.protocols.union.size_classes import SETS, over_bound
from link.errors import ConfigurationError, OverLimit, shareable
from link.randomness import RandomStream

EPSILON_COMMON: Final = 0.5  # ε of the number of elements that exactly two parties hold, seen by a merger outside
DELTA: Final = Fraction(1, 1 << 40)  # what the truncation of the common fakes' number may cost
MAX_BLOCKS: Final = STANDARD_128.max_elements  # of one party's list: 512 MiB of points

LENGTH_CLASSES: Final = (1, *sorted(size << j for size in (2, 3) for j in range(11)), blocks.MAX_BLOCKS)
"""Blocks of an element: 1, 2, 3, 4, 6, 8, 12, … up to the most."""
MOST_CLASSES: Final = (SETS.beyond, len(LENGTH_CLASSES))
"""What a set over its bound counts as, and an element that is too long."""

KEY: Final = "[union] bound"
"""The job's key that usually sets the bound of a union."""

_LONGEST_NAME: Final = 4096  # to which [union] max_item_bytes can be raised
_RANDOM_BYTES: Final = 16  # of a random element, so that no two coincide

PointTuples = NDArray[np.uint8]
"""Shape (m, b, 32): m tuples of b points each."""

Fill = Literal["lists", "merged", "union"]
"""What is filled up to a public size; each includes what is listed before it."""


@dataclass(frozen=True)
class OwnList:
    """A party's list and the key of its first layer, in no secret order: it must be permuted before it leaves.

    Attributes:
        key: The key.
        tuples: Elements and fakes, shape (m, b, 30).
    """

    key: CommutativeKey
    tuples: blocks.Tuples


@dataclass(frozen=True)
class ListSizes:
    """What all parties know of all lists; the same for each of them, so that sizes distinguish nobody's set.

    Attributes:
        parties: How many there are.
        blocks: Blocks per element.
        capacity: The most elements that a set may hold: the size class of the job's bound, or of the largest set.
        spare: Tuples on top of the capacity, so that common fakes always fit.
    """

    parties: int
    blocks: int
    capacity: int
    spare: int

    @property
    def length(self) -> int:
        """Tuples in a party's list."""
        return self.capacity + self.spare

    @property
    def most_elements(self) -> int:
        """The most elements that the union may hold."""
        return self.parties * self.capacity

    @property
    def total(self) -> int:
        """Tuples in all lists together."""
        return self.parties * self.length

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a party's list as points."""
        return (self.length, self.blocks, STANDARD_128.point_bytes)


def check_limits(
    own: Sequence[bytes], label: str, bound: int | None, max_element_bytes: int, fill: Fill = "lists"
) -> None:
    """Refuses limits within which no list can be made; `classes` reports what a set has over them.

    Raises:
        ConfigurationError: The bound, or the longest element, is none.
        ValueError: The union is to be filled, and its elements are not of one length of at least 16 bytes.
    """
    if bound is not None and not 1 <= bound <= MAX_BLOCKS:
        raise shareable(
            ConfigurationError(f"the bound of the union '{label}' must lie between 1 and {MAX_BLOCKS}, not {bound}")
        )
    if not 0 <= max_element_bytes <= blocks.MAX_ELEMENT_BYTES:
        raise ConfigurationError(
            f"the longest element of the union '{label}' must be allowed 0 to {blocks.MAX_ELEMENT_BYTES} bytes, "
            f"not {max_element_bytes}"
        )
    if fill == "union" and (max_element_bytes < _RANDOM_BYTES or any(len(e) < max_element_bytes for e in own)):
        raise ValueError(f"elements of a union that is filled up have one length of at least {_RANDOM_BYTES} bytes")


@cache
def common_fakes(epsilon: Decimal | float) -> TruncatedDiscreteLaplace:
    """The distribution of the number of fakes that two parties have in common.

    Args:
        epsilon: ε of the number of elements that exactly these two hold; a float counts as the decimal it prints as.

    Raises:
        ConfigurationError: ε is not positive, or so small that the fakes would be too many.
    """
    try:
        exact = Fraction(str(epsilon))
        if exact <= 0:
            raise ValueError
        return TruncatedDiscreteLaplace.for_delta(exact, DELTA)
    except ValueError:
        raise ConfigurationError(
            f"epsilon_dup of a union must be a positive number of at least 0.001, not {epsilon}; change it in the job"
        ) from None


def spare_for_common_fakes(parties: int, fakes: TruncatedDiscreteLaplace) -> int:
    """The most common fakes that one party can have with all its peers."""
    return (parties - 1) * 2 * fakes.shift


def length_class(elements: Iterable[bytes]) -> int:
    """Blocks of the longest element, rounded up to a length class."""
    return widened(blocks.blocks_needed(max(map(len, elements), default=0)))


def widened(width: int) -> int:
    """The least length class of at least so many blocks."""
    return LENGTH_CLASSES[bisect_left(LENGTH_CLASSES, width)]


def longest_allowed(max_element_bytes: int, fill: Fill = "lists") -> int:
    """Bytes of the longest element that a union takes: what fits into the length class of the job's limit.

    So jobs with one limit after the other reveal no more of the longest element than its length class, as unions do.
    """
    if fill == "union":  # all elements have this length, as is public
        return max_element_bytes
    return blocks.most_bytes(widened(blocks.blocks_needed(max_element_bytes)))


def classes(own: Sequence[bytes], bound: int | None, max_element_bytes: int, fill: Fill = "lists") -> tuple[int, int]:
    """The classes of a party's set, whose maxima over all parties are the lists' sizes; see `sizes_of`.

    Returns:
        The place of its size among the size classes, where there is no bound; the place of its longest element among
        the length classes, where these are not fixed by the union's fill. The last number of `MOST_CLASSES` is for what
        is over the limit.
    """
    longest = max(map(len, own), default=0)
    if longest > longest_allowed(max_element_bytes, fill):
        width = MOST_CLASSES[1]
    elif fill == "union":
        width = 0
    else:
        width = LENGTH_CLASSES.index(widened(blocks.blocks_needed(longest)))
    return (SETS.of(len(own), bound), width)


def over_limits(own: Sequence[bytes], bound: int | None, max_element_bytes: int) -> tuple[bool, bool]:
    """Whether a party's set holds too many elements, and whether one is too long."""
    size, width = classes(own, bound, max_element_bytes)
    return size == MOST_CLASSES[0], width == MOST_CLASSES[1]


def refuse_over_limits(
    over: tuple[bool, bool], label: str, bound: int | None, max_element_bytes: int, fill: Fill = "lists", *, key: str
) -> None:
    """Ends the job where some party's set is over a limit.

    Args:
        over: Whether one holds too many elements, and whether one holds too long an element.
        label: Of the union.
        bound: The job's bound.
        max_element_bytes: The longest element that the job allows.
        fill: What is filled up.
        key: The job's key that sets the bound, for people.

    Raises:
        OverLimit: One is, whose is not revealed.
    """
    too_many, too_long = over
    if too_many:
        allowed = over_bound(SETS, bound, key)
        raise shareable(
            OverLimit(
                f"some party, and nobody learns which, brings more elements to the union '{label}' than {allowed}"
            )
        )
    if too_long:
        longest = longest_allowed(max_element_bytes, fill)
        raised = max_element_bytes < _LONGEST_NAME
        advice = "raise [union] max_item_bytes in the job, or shorten the name" if raised else "shorten the name"
        raise shareable(
            OverLimit(
                f"some party, and nobody learns which, has a name of more than {longest} bytes, "
                f"the most that the union '{label}' takes; {advice}"
            )
        )


def sizes_of(
    largest: tuple[int, int],
    parties: int,
    label: str,
    bound: int | None,
    max_element_bytes: int,
    spare: int,
    fill: Fill = "lists",
    *,
    key: str = KEY,
) -> ListSizes:
    """The sizes of all lists, from the maxima of all parties' classes; `key` of the job sets the bound, for people.

    Raises:
        OverLimit: Some party's set is over a limit, whose is not revealed; or the lists would be too long.
    """
    size, width = largest
    over = (size == MOST_CLASSES[0], width == MOST_CLASSES[1])
    refuse_over_limits(over, label, bound, max_element_bytes, fill, key=key)
    sizes = ListSizes(
        parties,
        blocks.blocks_needed(max_element_bytes) if fill == "union" else LENGTH_CLASSES[width],
        SETS.capacity(size, bound),
        spare,
    )
    if sizes.length * sizes.blocks > MAX_BLOCKS:
        lowered = f"{key} or max_item_bytes" if key == KEY else key
        raise shareable(
            OverLimit(f"the lists of this union would hold more than {MAX_BLOCKS} blocks; lower {lowered} in the job")
        )
    return sizes


def filled(elements: Sequence[bytes], size: int, element_bytes: int, random: RandomStream) -> list[bytes]:
    """The elements and as many random ones as make up `size`, in ascending order of their bytes."""
    drawn = random.bytes(element_bytes * (size - len(elements)))
    return sorted([*elements, *(drawn[start : start + element_bytes] for start in range(0, len(drawn), element_bytes))])


def padded(
    elements: Sequence[bytes],
    sizes: ListSizes,
    fakes: TruncatedDiscreteLaplace,
    shared: Iterable[RandomStream],
    private: RandomStream,
) -> OwnList:
    """A party's list under a fresh key: elements, common fakes, private fakes.

    Args:
        elements: Different byte strings, at most the party's capacity.
        sizes: What was agreed.
        fakes: Distribution of the number of fakes in common with a peer.
        shared: One stream per peer, which the peer draws from too; equal streams give equal fakes.
        private: The party's own stream.
    """
    common = [blocks.fake(stream, fakes.sample(stream), sizes.blocks) for stream in shared]
    missing = sizes.length - len(elements) - sum(map(len, common))
    key = CommutativeKey.generate(private)
    fakes_alone = blocks.fake(private, missing, sizes.blocks)
    return OwnList(key, np.concatenate([blocks.encode(elements, sizes.blocks), *common, fakes_alone]))


def distinct(tuples: Sequence[PointTuples]) -> PointTuples:
    """The different tuples of several lists; tuples are equal when all their blocks are.

    Args:
        tuples: Each of shape (m, b, 32).

    Returns:
        Shape (distinct, b, 32), ordered by their bytes, which reveals nothing of their origin.
    """
    joined = np.concatenate(tuples)
    width = joined.shape[1] * joined.shape[2]
    rows = np.unique(joined.reshape(len(joined), width).view(np.dtype((np.void, width))))
    return rows.view(np.uint8).reshape(-1, *joined.shape[1:])


def without_strangers(tuples: blocks.Tuples, strangers: int) -> blocks.Tuples:
    """The decrypted tuples without the random points that filled the merged list, which decode to nothing.

    A random point has the tag of its content with probability 2^-96.

    Args:
        tuples: Shape (m, b, 30).
        strangers: How many random tuples were put in.

    Raises:
        ValueError: More or fewer tuples than these are malformed.
    """
    if not strangers:
        return tuples
    places = [place for place in range(len(tuples)) if _is_encoding(tuples[place : place + 1])]
    require(len(places) == len(tuples) - strangers, "element")
    return np.take(tuples, np.array(places, np.intp), axis=0)


def _is_encoding(one: blocks.Tuples) -> bool:
    try:
        blocks.decode(one)
    except ValueError:
        return False
    return True


def sorted_elements(tuples: blocks.Tuples, max_element_bytes: int, *, fakes: bool, strangers: int = 0) -> list[bytes]:
    """The elements of decrypted or opened tuples, in ascending order of their bytes.

    Args:
        tuples: Shape (m, b, 30).
        max_element_bytes: The longest element that the job allows.
        fakes: Whether fakes may be among them; they are dropped.
        strangers: How many random tuples must be among them; they are dropped too.

    Raises:
        ValueError: A tuple is malformed, too long, a fake where none may be, or there twice.
    """
    decoded = blocks.decode(without_strangers(tuples, strangers))
    elements = sorted(element for element in decoded if element is not None)
    require(fakes or len(elements) == len(decoded), "element")
    require(all(len(element) <= max_element_bytes for element in elements), "element")
    require(all(a != b for a, b in pairwise(elements)), "element")
    return elements


def require(condition: bool, what: str) -> None:
    """Raises ValueError, in words that follow the name of a peer and its message."""
    if not condition:
        raise ValueError(f"its {what} is not what this union allows")
