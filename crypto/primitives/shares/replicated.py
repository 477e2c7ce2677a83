"""Replicated sharing among three: a secret matrix is the sum of three components, of which each holder has two.

Holder m (of 0, 1, 2) has the components m and m + 1, counted modulo 3. Any two holders have all three, one alone has
two uniform ones. As any two components are together at some holder, products are computed locally (`local_product`).

Source: Araki, Furukawa, Lindell, Nof and Ohara, "High-Throughput Semi-Honest Secure Three-Party Computation with an
Honest Majority", CCS 2016, section 2, in the form of Mohassel and Rindal, "ABY3", CCS 2018, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import Share, check_complete, check_same_holders, read_only
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.ring_matrix import matrix_product, random_matrix
from link.randomness import RandomStream

Holders3 = tuple[str, str, str]
WORDS = (np.uint32, np.uint64)


@dataclass(frozen=True, eq=False, repr=False)
class ReplicatedShare(Share):
    """One holder's share of a matrix over Z_2^32 or Z_2^64.

    Args:
        own: The component of the holder's number, shape (columns, rows), uint32 or uint64; kept as a read-only view.
        following: The next component, likewise.
        holder: Name of the party that holds this share.
        holders: Names of the three who hold shares of the matrix, in the order that all of them use.
    """

    own: Words
    following: Words
    holder: str
    holders: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.own.dtype not in WORDS or self.own.ndim != 2:
            raise TypeError("a replicated share holds matrices of uint32 or uint64")
        if (self.own.dtype, self.own.shape) != (self.following.dtype, self.following.shape):
            raise TypeError("both components of a replicated share have one type and shape")
        self._check_holders()
        if len(self.holders) != 3:
            raise ValueError("a replicated share has three holders")
        object.__setattr__(self, "own", read_only(self.own))
        object.__setattr__(self, "following", read_only(self.following))

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows of the shared matrix."""
        columns, rows = self.own.shape
        return columns, rows

    @property
    def number(self) -> int:
        """0, 1 or 2: the place among the holders."""
        return self.holders.index(self.holder)

    def __add__(self, other: ReplicatedShare) -> ReplicatedShare:
        self._matching(other)
        return self._with(self.own + other.own, self.following + other.following)

    def __sub__(self, other: ReplicatedShare) -> ReplicatedShare:
        self._matching(other)
        return self._with(self.own - other.own, self.following - other.following)

    def __getitem__(self, columns: slice | NDArray[np.int64]) -> ReplicatedShare:
        """The share of some of the columns; an array of positions or a slice, never a single position."""
        if not isinstance(columns, slice | np.ndarray):
            raise TypeError("a share is selected from by a slice or an array")
        return self._with(self.own[columns], self.following[columns])

    @staticmethod
    def stacked(shares: Sequence[ReplicatedShare]) -> ReplicatedShare:
        """The share of one share's columns followed by another's, of equal length.

        Raises:
            TypeError: They are of different holders or words.
        """
        for share in shares[1:]:
            shares[0]._check(share)
        own, following = (np.concatenate(parts) for parts in zip(*((s.own, s.following) for s in shares), strict=True))
        return shares[0]._with(own, following)

    def local_product(self, other: ReplicatedShare) -> Words:
        """This holder's part of the products element by element: the three parts add up to them.

        The parts are functions of the shares: under no mask, they must not leave.
        """
        self._matching(other)
        part: Words = self.own * (other.own + other.following)
        part += self.following * other.own
        return part

    def local_matrix_product(self, other: ReplicatedShare) -> Words:
        """This holder's part of self · otherᵀ, shape (own columns, other's columns); else as `local_product`."""
        self._check(other)
        word = self.own.dtype.type
        part = matrix_product(self.own, other.own + other.following, word)
        part += matrix_product(self.following, other.own, word)
        return part

    def _with(self, own: Words, following: Words) -> ReplicatedShare:
        return ReplicatedShare(own, following, self.holder, self.holders)

    def _check(self, other: object) -> None:
        if not isinstance(other, ReplicatedShare):
            raise TypeError("a replicated share is computed upon with its like alone")
        check_same_holders(self, other)
        if self.own.dtype != other.own.dtype:
            raise TypeError("replicated shares of different words do not mix")

    def _matching(self, other: ReplicatedShare) -> None:
        self._check(other)
        if self.shape != other.shape:
            raise ValueError(f"shares of shapes {self.shape} and {other.shape} do not match")

    def __repr__(self) -> str:
        return f"<ReplicatedShare of shape {self.shape}>"


def replicate(values: Words, holders: Holders3, random: RandomStream) -> list[ReplicatedShare]:
    """Split a matrix into three shares, of which any single one is independent and uniform.

    Args:
        values: Shape (columns, rows), uint32 or uint64.
        holders: Names of three holders.
        random: Fresh randomness.

    Returns:
        One share per holder, in the holders' order.
    """
    shape = (values.shape[0], values.shape[1])
    first, second = (random_matrix(random, shape, values.dtype.type) for _ in range(2))
    parts = [first, second, values - first - second]
    return [
        ReplicatedShare(parts[number], parts[(number + 1) % 3], name, holders) for number, name in enumerate(holders)
    ]


def reconstruct_replicated(shares: Sequence[ReplicatedShare]) -> Words:
    """The matrix of three shares, one of each holder, in any order.

    Raises:
        ValueError: A holder's share is missing or doubled, or the shares do not belong together.
    """
    check_complete(shares)
    in_order = sorted(shares, key=lambda share: share.number)
    for one, following in zip(in_order, [*in_order[1:], in_order[0]], strict=True):
        if one.shape != following.shape or not np.array_equal(one.following, following.own):
            raise ValueError("the shares are of different matrices")
    total: Words = in_order[0].own + in_order[1].own + in_order[2].own
    return total
