"""Shamir's secret sharing over the field of p = 2^61 − 1 elements: any t + 1 of n holders reconstruct, t learn nothing.

A secret is the value at 0 of a random polynomial of degree t; holder i's share is its value at i + 1. Sums of shares
and public multiples of them are shares of sums and multiples. Like every share it is never a bare array.

Source: Shamir, "How to Share a Secret", Communications of the ACM 22(11), 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import Share, check_same_holders, read_only
from link.randomness import RandomStream

PRIME: Final = (1 << 61) - 1
_P: Final = np.uint64(PRIME)
_BITS: Final = np.uint64(61)
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64((1 << 32) - 1)
_CHUNK: Final = 1 << 14  # elements at once: operands, product and scratch stay in the second-level cache

Elements = NDArray[np.uint64]
"""Shape (n,): elements of the field, each below p."""


@dataclass(frozen=True, eq=False, repr=False)
class ShamirShare(Share):
    """One holder's share of a vector over the field.

    Args:
        values: Shape (n,), uint64, each below p; kept as a read-only view.
        threshold: t: so many holders together learn nothing, one more reconstruct.
        holder: Name of the party that holds this share.
        holders: Names of all holders; the one at position i holds the polynomials' values at i + 1.
    """

    values: Elements
    threshold: int
    holder: str
    holders: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.values.dtype != np.uint64 or self.values.ndim != 1:
            raise TypeError("a share holds a uint64 array of one dimension")
        if len(self.values) and int(self.values.max()) >= PRIME:
            raise ValueError("a share's values are elements of the field, below 2^61 − 1")
        self._check_holders()
        _check_threshold(self.threshold, self.holders)
        object.__setattr__(self, "values", read_only(self.values))

    @property
    def size(self) -> int:
        """Length of the shared vector."""
        return len(self.values)

    def __add__(self, other: ShamirShare) -> ShamirShare:
        return self._with(_add(self.values, self._matching(other).values))

    def __sub__(self, other: ShamirShare) -> ShamirShare:
        return self._with(_add(self.values, _negative(self._matching(other).values)))

    def __neg__(self) -> ShamirShare:
        return self._with(_negative(self.values))

    def __getitem__(self, selection: slice | NDArray[np.int64] | NDArray[np.bool_]) -> ShamirShare:
        """The share of part of the vector; an array of positions or flags, or a slice, never a single position."""
        if not isinstance(selection, slice | np.ndarray):
            raise TypeError("a share is selected from by a slice or an array")
        return self._with(self.values[selection])

    def plus_public(self, constant: int | Elements) -> ShamirShare:
        """Add a public constant to the shared vector; every holder does so.

        Args:
            constant: A uint64 array of shape (n,), each below p, or an integer.
        """
        return self._with(_add(self.values, _elements(constant, self.size)))

    def times_public(self, factor: int | Elements) -> ShamirShare:
        """Multiply the shared vector by a public factor; every holder does so.

        Args:
            factor: A uint64 array of shape (n,), each below p, or an integer.
        """
        return self._with(multiply_mod(self.values, _elements(factor, self.size)))

    def _with(self, values: Elements) -> ShamirShare:
        return ShamirShare(values, self.threshold, self.holder, self.holders)

    def _matching(self, other: object) -> ShamirShare:
        if not isinstance(other, ShamirShare):
            raise TypeError("a share adds to a share; a public number goes through plus_public or times_public")
        check_same_holders(self, other)
        if self.threshold != other.threshold:
            raise TypeError(f"shares of thresholds {self.threshold} and {other.threshold} do not add up")
        if self.size != other.size:
            raise ValueError(f"a share of length {self.size} does not add to one of length {other.size}")
        return other

    def __repr__(self) -> str:
        return f"<ShamirShare of length {self.size}, threshold {self.threshold}>"


def share_elements(values: Elements, holders: Sequence[str], threshold: int, random: RandomStream) -> list[ShamirShare]:
    """Split a vector into shares, of which any `threshold` are independent and uniform.

    Args:
        values: Shape (n,), uint64, each below p.
        holders: Names of the holders.
        threshold: t, from 1 to one less than the number of holders.
        random: Fresh randomness.

    Returns:
        One share per holder, in the holders' order.

    Raises:
        ValueError: The threshold is out of range, or a value is none of the field.
    """
    names = tuple(holders)
    _check_threshold(threshold, names)
    secret = _elements(values, len(values))
    coefficients = [secret, *(_uniform(random, len(secret)) for _ in range(threshold))]
    evaluated = np.empty((len(names), len(secret)), np.uint64)
    for start in range(0, len(secret), _CHUNK):
        some = slice(start, start + _CHUNK)
        for point, values_at in enumerate(evaluated, start=1):
            value = coefficients[-1][some]
            for coefficient in coefficients[-2::-1]:  # Horner, from the highest degree down
                value = _add(_times_point(value, point), coefficient[some])
            values_at[some] = value
    return [ShamirShare(row, threshold, name, names) for row, name in zip(evaluated, names, strict=True)]


def reconstruct_elements(shares: Sequence[ShamirShare]) -> Elements:
    """The vector from the shares of at least threshold + 1 holders, in any order.

    What more shares than needed say is compared.

    Returns:
        Shape (n,).

    Raises:
        ValueError: There are too few shares, one is doubled, they are of different vectors, or they contradict each
            other.
    """
    if not shares:
        raise ValueError("a vector is reconstructed from shares")
    first = shares[0]
    needed = first.threshold + 1
    if any((s.holders, s.threshold, s.size) != (first.holders, first.threshold, first.size) for s in shares):
        raise ValueError("the shares are of different vectors")
    points = [s.holders.index(s.holder) + 1 for s in shares]
    if len(set(points)) != len(points) or len(points) < needed:
        raise ValueError(f"a vector is reconstructed from the shares of {needed} different holders")
    base, values = points[:needed], [s.values for s in shares[:needed]]
    for point, share in zip(points[needed:], shares[needed:], strict=True):
        if not np.array_equal(_interpolate(base, values, point), share.values):
            raise ValueError(f"the share of {share.holder} contradicts the others'")
    return _interpolate(base, values, 0)


def multiply_mod(one: Elements, other: Elements) -> Elements:
    """Products modulo p, of arrays of which one may have length 1.

    Args:
        one: Shape (n,), each below p.
        other: Shape (n,) or (1,), each below p.

    Returns:
        Shape (n,).
    """
    product = np.empty(len(one), np.uint64)
    for start in range(0, len(one), _CHUNK):
        some = slice(start, start + _CHUNK)
        product[some] = _multiply(one[some], other if len(other) == 1 else other[some])
    return product


def _multiply(a: Elements, b: Elements) -> Elements:
    """By halves of 32 bits: hh·2^64 + middle·2^32 + ll, where 2^64 = 8 and 2^61 = 1 modulo p."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    low = a_low * b_low
    middle = a_low * b_high
    a_high_low = a_high * b_low
    middle += a_high_low  # below 2^62
    result = a_high * b_high  # below 2^58
    result <<= np.uint64(3)
    result += low & _P
    low >>= _BITS
    result += low
    result += middle >> np.uint64(29)
    middle &= np.uint64((1 << 29) - 1)
    middle <<= _HALF
    result += middle  # below 3·2^61 and a little
    low = result >> _BITS
    result &= _P
    result += low
    return _reduced(result)


def _times_point(values: Elements, point: int) -> Elements:
    if point >= 8:
        return _multiply(values, np.full(1, point, np.uint64))
    product = values * np.uint64(point)  # below 2^64
    carried = product >> _BITS
    product &= _P
    product += carried
    return _reduced(product)


def _reduced(values: Elements) -> Elements:
    """From below 2·p to below p, without a branch: what wraps around below zero is the larger of the two."""
    reduced: Elements = np.minimum(values, values - _P)
    return reduced


def _add(one: Elements, other: Elements) -> Elements:
    return _reduced(one + other)


def _negative(values: Elements) -> Elements:
    return _reduced(_P - values)


def _interpolate(points: Sequence[int], values: Sequence[Elements], at: int) -> Elements:
    """Lagrange: the value at `at` of the polynomial through the points."""
    total = np.zeros(len(values[0]), np.uint64)
    for point, value in zip(points, values, strict=True):
        weight = 1
        for other in points:
            if other != point:
                weight = weight * (at - other) * pow(point - other, -1, PRIME) % PRIME
        total = _add(total, multiply_mod(value, np.full(1, weight, np.uint64)))
    return total


def _uniform(random: RandomStream, size: int) -> Elements:
    """Uniform elements: 61 bits each, redrawn where they are all ones."""
    values = random.uint64(size) & _P
    while (redrawn := np.flatnonzero(values == _P)).size:
        values[redrawn] = random.uint64(redrawn.size) & _P
    return values


def _elements(values: int | Elements, size: int) -> Elements:
    if isinstance(values, int):
        return np.full(1, values % PRIME, np.uint64)
    if values.dtype != np.uint64:
        raise TypeError("a public vector must be a uint64 array")
    if values.shape != (size,) or (size and int(values.max()) >= PRIME):
        raise ValueError(f"a public vector has {size} values below 2^61 − 1")
    return values


def _check_threshold(threshold: int, holders: tuple[str, ...]) -> None:
    if not 1 <= threshold < len(holders):
        raise ValueError(f"a threshold among {len(holders)} holders lies between 1 and {len(holders) - 1}")
