"""The carry out of a + b, where one party knows a and two others know b: digit by digit, as products of bits.

Whether a digit generates a carry, or passes one on, is an inner product of bits that depend on a's digit alone with
bits that depend on b's alone. On the one side they say which value a's digit has (`selected`); on the other they say
for each of these values what b's digit makes of it (`looked_up`). So whoever knows b computes shares of both from any
XOR shares of the first, without a message.

Numbers are bit-sliced: plane i holds bit i of every number, packed eight to a byte (`crypto.primitives.shares.xor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

MANY: Final = 1 << 17  # numbers, above which fewer bytes are worth another round
_DIGIT_BITS: Final = 4
_DIGIT_BITS_OF_MANY: Final = 3
Planes = NDArray[np.uint8]
_ALL: Final = np.uint8(0xFF)


def digits(bits: int, number: int) -> tuple[int, ...]:
    """The sizes of the digits of so many numbers of so many bits, the lowest first: as few digits as may be, alike.

    Smaller ones save bytes, 6 bits of 55 at 8 bits a number, and take a round more there.
    """
    count = -(-bits // (_DIGIT_BITS if number <= MANY else _DIGIT_BITS_OF_MANY))
    small, more = divmod(bits, count)
    return (small,) * (count - more) + (small + 1,) * more


def selected_planes(cut: Sequence[int]) -> int:
    """How many planes `selected` has."""
    return sum((1 << size) - 1 for size in cut)


def carry_planes(cut: Sequence[int]) -> int:
    """How many planes `looked_up` has."""
    return 2 * len(cut) - 1


def selected(planes: Planes, cut: Sequence[int]) -> Planes:
    """Which value each digit of a has: for each digit one plane a value, in ascending order, but for the value 0.

    Args:
        planes: Of a, as many as the digits have bits.
        cut: Sizes of the digits.

    Returns:
        Shape (selected_planes(cut), bytes).
    """
    return np.concatenate([_one_hot(digit)[1:] for digit in _each(planes, cut)])


def looked_up(part: Planes, planes: Planes, cut: Sequence[int], *, adds: bool) -> Planes:
    """A share of what each digit does to carries: `carry_planes` planes.

    With v the digit of a and u that of b, it generates a carry where u ≥ 2^d − v, and passes one on where
    u = 2^d − 1 − v. For v = 0 the former is never true; the latter is a public function of u, which `adds` adds.

    Args:
        part: One of two XOR shares of `selected` of a.
        planes: Of b.
        cut: Sizes of the digits.
        adds: Whether this is the share to which what does not depend on a is added.

    Returns:
        First, from the lowest digit up, whether each generates a carry; then whether each but the lowest passes one on.
    """
    generated, passed, start = [], [], 0
    for place, digit in enumerate(_each(planes, cut)):
        values = _one_hot(digit)
        full, most = values[-1], len(values) - 1
        of_digit = part[start : start + most]
        start += most
        generates, passes, reached = np.zeros_like(full), full.copy() if adds else np.zeros_like(full), full.copy()
        for value, chosen in enumerate(of_digit, 1):
            generates ^= chosen & reached
            passes ^= chosen & (values[most - value] ^ full)
            reached |= values[most - value]
        generated.append(generates)
        if place:
            passed.append(passes)
    return np.stack([*generated, *passed])


def _each(planes: Planes, cut: Sequence[int]) -> list[Planes]:
    stops = list(accumulate(cut))
    return [planes[stop - size : stop] for stop, size in zip(stops, cut, strict=True)]


def _one_hot(digit: Planes) -> Planes:
    """One plane for each value of a digit: whether it has that value."""
    found = np.full((1, digit.shape[1]), _ALL)
    for plane in digit:
        found = np.concatenate([found & ~plane, found & plane])
    return found
