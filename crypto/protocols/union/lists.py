"""The lists of a set union before the first key touches them: public sizes, fakes, encoding.

Pure functions. A party's list holds its pseudonyms, random ones up to its capacity, the fakes that it has in common
with each peer, and private fakes up to a length that everybody knows beforehand, each encoded as one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Final, Self

import numpy as np

from crypto.primitives import blocks
from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.embedding import Blocks
from crypto.primitives.groups.ristretto255 import POINT_BYTES, Points
from crypto.protocols.union.joint_prf import PSEUDONYM_BYTES
from crypto.protocols.union.size_classes import SETS
from link.errors import ConfigurationError
from link.randomness import RandomStream

EPSILON_COMMON: Final = 0.5  # ε of the number of elements that exactly two parties hold, seen by a merger outside
DELTA: Final = Fraction(1, 1 << 40)  # what the truncation of the common fakes' number may cost


@dataclass(frozen=True)
class OwnList:
    """A party's list and the key of its first layer, in no secret order: it must be permuted before it leaves.

    Attributes:
        key: The key.
        blocks: Pseudonyms and fakes, shape (m, 30).
    """

    key: CommutativeKey
    blocks: Blocks


@dataclass(frozen=True)
class ListSizes:
    """What all parties know of all lists; the same for each of them, so that sizes distinguish nobody's set.

    Attributes:
        parties: How many there are.
        capacity: The most elements that a set may hold: the size class of the job's bound, or of the largest set.
        spare: Places on top of the capacity, so that common fakes always fit.
    """

    parties: int
    capacity: int
    spare: int

    @classmethod
    def expected(cls, held: Mapping[str, int], bound: int | None) -> Self:
        """Sizes of the lists of sets of these sizes.

        Args:
            held: By party, the size of its set.
            bound: The job's bound; None where all learn the size class of the largest set.
        """
        capacity = SETS.rounded(bound or max(held.values()))
        return cls(len(held), capacity, spare_for_common_fakes(len(held), common_fakes(EPSILON_COMMON)))

    @property
    def length(self) -> int:
        """Places in a party's list."""
        return self.capacity + self.spare

    @property
    def elements(self) -> int:
        """Elements of the union, with the random ones that fill it."""
        return self.parties * self.capacity

    @property
    def total(self) -> int:
        """Places in all lists together, and in the merged list."""
        return self.parties * self.length

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a party's list as points."""
        return (self.length, POINT_BYTES)


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


def filled(elements: Sequence[bytes], size: int, random: RandomStream) -> list[bytes]:
    """The pseudonyms and as many random ones as make up `size`, in ascending order of their bytes."""
    drawn, step = random.bytes(PSEUDONYM_BYTES * (size - len(elements))), PSEUDONYM_BYTES
    return sorted([*elements, *(drawn[start : start + step] for start in range(0, len(drawn), step))])


def padded(
    elements: Sequence[bytes],
    sizes: ListSizes,
    fakes: TruncatedDiscreteLaplace,
    shared: Iterable[RandomStream],
    private: RandomStream,
) -> OwnList:
    """A party's list under a fresh key: pseudonyms, common fakes, private fakes.

    Args:
        elements: Different pseudonyms, as many as the party's capacity.
        sizes: What was agreed.
        fakes: Distribution of the number of fakes in common with a peer.
        shared: One stream per peer, which the peer draws from too; equal streams give equal fakes.
        private: The party's own stream.
    """
    common = [blocks.fake(stream, fakes.sample(stream)) for stream in shared]
    missing = sizes.length - len(elements) - sum(map(len, common))
    key = CommutativeKey.generate(private)
    fakes_alone = blocks.fake(private, missing)
    return OwnList(key, np.concatenate([blocks.encode(elements), *common, fakes_alone]))


def distinct(lists: Sequence[Points]) -> Points:
    """The different points of several lists, ordered by their bytes, which reveals nothing of their origin."""
    joined = np.concatenate(lists)
    rows = np.unique(joined.view(np.dtype((np.void, POINT_BYTES))))
    return rows.view(np.uint8).reshape(-1, POINT_BYTES)


def sorted_elements(found: Blocks, *, fakes: bool, strangers: int = 0) -> list[bytes]:
    """The pseudonyms in decrypted or opened blocks, in ascending order of their bytes.

    Args:
        found: Shape (m, 30).
        fakes: Whether fakes may be among them; they are dropped.
        strangers: How many random points, which filled the merged list, must be among them; they decode to nothing and
            are dropped, too. One has the tag of its content with probability 2^-96.

    Raises:
        ValueError: A block is malformed, a fake where none may be, or there twice; or more or fewer than the strangers
            are malformed.
    """
    whole = found[blocks.are_encodings(found)]
    require(len(whole) == len(found) - strangers, "element")
    decoded = blocks.decode(whole)
    elements = sorted(element for element in decoded if element is not None)
    require(fakes or len(elements) == len(decoded), "element")
    require(all(a != b for a, b in pairwise(elements)), "element")
    return elements


def require(condition: bool, what: str) -> None:
    """Raises ValueError, in words that follow the name of a peer and its message."""
    if not condition:
        raise ValueError(f"its {what} is not what this union allows")
