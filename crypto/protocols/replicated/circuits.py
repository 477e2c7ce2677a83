"""Circuits on shared bits: sums of numbers, and whether they reach a threshold.

A circuit is a generator: it yields the operands of ANDs that may be taken at once, as stacks of planes, and gets their
ANDs. XORs it takes itself, as they need no message. So any circuits can be evaluated side by side, or only counted.

Numbers are stacks of planes, plane i with bit i of every number. With many numbers carries are found one after the
other, one AND a bit. With few, those on which all wait by a parallel prefix, in ⌈log2 width⌉ + 1 steps of more ANDs;
and the others, in the steps that this takes anyway, by segments that carries skip: two ANDs a bit, three for all.

Source: majority by one AND, Boyar, Peralta and Pochuev, "On the multiplicative complexity of Boolean functions over the
basis (∧, ⊕, 1)", TCS 2000; prefixes, Sklansky, IRE Transactions on Electronic Computers, 1960; skipped carries, Lehman
and Burla, IRE Transactions on Electronic Computers, 1961.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


class Planes(Protocol):
    """A share of planes of bits, of whatever kind; see `ReplicatedBits`."""

    @property
    def width(self) -> int:
        """How many planes."""

    def __xor__(self, other: Self) -> Self: ...

    def bits(self, selection: slice | Places) -> Self:
        """The share of some of the planes."""

    def replaced(self, selection: slice | Places, share: Self) -> Self:
        """The share with another's planes in place of some."""

    def inverted(self) -> Self:
        """The share of all bits turned over."""

    def constant(self, bit: int) -> Self:
        """The share of one plane that holds a public bit everywhere."""

    @staticmethod
    def stacked(shares: Sequence[Any]) -> Any:
        """The share of one share's planes followed by another's."""


S = TypeVar("S", bound=Planes)
T = TypeVar("T")
Circuit = Generator[tuple[S, S], S, T]


def _stacked(shares: Sequence[S]) -> S:
    found: S = shares[0].stacked(shares)
    return found


def side_by_side(circuits: Sequence[Circuit[S, Any]]) -> Circuit[S, list[Any]]:
    """Evaluates circuits in common steps; their outputs."""
    outputs: list[Any] = [None] * len(circuits)
    asked: dict[int, tuple[S, S]] = {}
    ands: S | None = None
    while True:
        start, waiting = 0, list(asked) if ands is not None else range(len(circuits))
        for place in waiting:
            try:
                if ands is None:
                    asked[place] = next(circuits[place])
                else:
                    stop = start + asked[place][0].width
                    asked[place] = circuits[place].send(ands.bits(slice(start, stop)))
            except StopIteration as end:
                outputs[place] = end.value
                asked.pop(place, None)
            start = stop if ands is not None else 0
        if not asked:
            return outputs
        ands = yield _stacked([x for x, _ in asked.values()]), _stacked([y for _, y in asked.values()])


def carry_saved(numbers: Sequence[S]) -> Circuit[S, tuple[S, S]]:
    """Two numbers with the sum of these, modulo 2^width: three become two, until two are left."""
    left = list(numbers)
    while len(left) > 2:
        threes = [left[place : place + 3] for place in range(0, len(left) // 3 * 3, 3)]
        rest = left[3 * len(threes) :]
        low = slice(0, left[0].width - 1)  # of the highest bits no carry is asked for
        ands = yield (
            _stacked([(x ^ z).bits(low) for x, _, z in threes]),
            _stacked([(y ^ z).bits(low) for _, y, z in threes]),
        )
        for place, (x, y, z) in enumerate(threes):
            carries = ands.bits(slice(place * low.stop, (place + 1) * low.stop)) ^ z.bits(low)
            rest += [x ^ y ^ z, _stacked([carries.constant(0), carries])]
        left = rest
    return left[0], left[1]


def reaching_sums(numbers: Sequence[S], threshold: int, *, few: bool) -> Circuit[S, tuple[S, S]]:
    """The sums, and one plane: whether each reaches the threshold. They mean something where sums are below 2^width.

    Args:
        numbers: Two or more, of one width.
        threshold: Public, from 0 to 2^width − 1.
        few: Whether steps are saved rather than ANDs.
    """
    if few:
        return (yield from _reaching_in_few_steps(numbers, threshold))
    x, y = yield from carry_saved(numbers)
    against = _complement(x, threshold)
    # The sums' bits are compared as they come, a step behind.
    carry, reached = x.constant(0), x.constant(1)
    bits: list[S] = []
    for place in range(x.width + 1):
        operands = []
        if place < x.width - 1:
            operands.append((_bit(x, place), _bit(y, place), carry))
        if place:
            operands.append((bits[-1], _bit(against, place - 1), reached))
        if place < x.width:
            bits.append(_bit(x, place) ^ _bit(y, place) ^ carry)
        if not operands:
            continue
        ands = yield (
            _stacked([one ^ third for one, _, third in operands]),
            _stacked([other ^ third for _, other, third in operands]),
        )
        if place < x.width - 1:
            carry = carry ^ _bit(ands, 0)
        if place:
            reached = reached ^ _bit(ands, ands.width - 1)
    return _stacked(bits), reached


def _reaching_in_few_steps(numbers: Sequence[S], threshold: int) -> Circuit[S, tuple[S, S]]:
    """Side by side, the sums and the sums less the threshold, whose highest bit, one more, is their sign."""
    width = numbers[0].width
    x, y = yield from carry_saved([_stacked([each, each.constant(0)]) for each in numbers])
    low = slice(0, width)
    steps = _steps_of_reaching(width)
    found, reached = yield from side_by_side([_sums_of(x.bits(low), y.bits(low), steps), _reaching(x, y, threshold)])
    return found, reached


def _sums_of(x: S, y: S, steps: int) -> Circuit[S, S]:
    low = slice(0, x.width - 1)
    carries = yield from _carries_in(steps, x.bits(low), y.bits(low))
    return x ^ y ^ _stacked([x.constant(0), carries])


def _steps_of_reaching(width: int) -> int:
    """Steps of `_reaching` of numbers of so many bits and one more."""
    return 2 + (width - 1).bit_length()


def _reaching(x: S, y: S, threshold: int) -> Circuit[S, S]:
    """Whether x + y, whose highest bit is 0, reaches the threshold."""
    u, v = yield from carry_saved([x, y, _complement(x, threshold)])
    high, low = slice(x.width - 1, None), slice(0, x.width - 1)
    borrow = yield from _carry_out(u.bits(low), v.bits(low), 1)
    return (u.bits(high) ^ v.bits(high) ^ borrow).inverted()


def sums(numbers: Sequence[S], *, few: bool) -> Circuit[S, S]:
    """The sums modulo 2^width of two or more numbers of one width; `few` as of `reaching_sums`."""
    x, y = yield from carry_saved(numbers)
    return (yield from (_sums_of(x, y, 0) if few else _rippled(x, y)))


def _rippled(x: S, y: S) -> Circuit[S, S]:
    """Their sums modulo 2^width, with one AND a bit but the highest, one after the other."""
    carry, bits = x.constant(0), []
    for place in range(x.width):
        one, other = _bit(x, place), _bit(y, place)
        bits.append(one ^ other ^ carry)
        if place < x.width - 1:
            ands = yield one ^ carry, other ^ carry
            carry = carry ^ ands
    return _stacked(bits)


def above(numbers: Sequence[S], limits: Sequence[S]) -> Circuit[S, S]:
    """One plane for each: whether the numbers are above the limits; one AND a bit, one after the other."""
    width, count = numbers[0].width, len(numbers)
    reached = _stacked([limits[0].constant(1)] * count)
    for place in range(width):
        of_limits, of_numbers = (_stacked([_bit(each, place) for each in every]) for every in (limits, numbers))
        ands = yield of_limits ^ reached, of_numbers.inverted() ^ reached
        reached = reached ^ ands
    return reached.inverted()


def any_of(bits: Sequence[S]) -> Circuit[S, S]:
    """The ORs of these planes, place by place, in ⌈log2 of their number⌉ steps."""
    left = [each.inverted() for each in bits]
    while len(left) > 1:
        pairs, width = len(left) // 2, left[0].width
        ands = yield _stacked(left[: 2 * pairs : 2]), _stacked(left[1 : 2 * pairs : 2])
        left = [ands.bits(slice(place * width, (place + 1) * width)) for place in range(pairs)] + left[2 * pairs :]
    return left[0].inverted()


def beyond(numbers: Sequence[S], borrows: Sequence[S], limits: Sequence[S]) -> Circuit[S, S]:
    """Planes that are zero where numbers are not above their limits, one a bit, of each of them; in one step.

    Args:
        numbers: Of one width.
        borrows: What limit − number borrows from each place but the lowest, as whoever knows both says. Others would
            have to find one after the other; here each place is held against the next.
        limits: Of the numbers' width.
    """
    one, other, rest = held_against(numbers, borrows, limits)
    ands = yield one, other
    return rest ^ ands


def held_against(numbers: Sequence[S], borrows: Sequence[S], limits: Sequence[S]) -> tuple[S, S, S]:
    """Of the planes of `beyond` what ANDs are taken of, and what is added to these."""
    one, other, rest = [], [], []
    for number, borrowed, limit in zip(numbers, borrows, limits, strict=True):
        none = number.constant(0)
        arriving = _stacked([none, borrowed])
        one.append(limit.inverted() ^ arriving)
        other.append(number ^ arriving)
        rest.append(arriving ^ _stacked([borrowed, none]))  # from above the highest place nothing may be borrowed
    return _stacked(one), _stacked(other), _stacked(rest)


def planes_by_step(circuit: Circuit[S, T], like: S) -> list[int]:
    """How many planes of ANDs the circuit asks for, step by step; its inputs are alike planes without a number."""
    found: list[int] = []
    try:
        operands, _ = next(circuit)
        while True:
            found.append(operands.width)
            operands, _ = circuit.send(_stacked([like.constant(0)] * operands.width))
    except StopIteration:
        return found


def _carry_out(x: S, y: S, carry: int) -> Circuit[S, S]:
    """The carry out of the highest place of x + y + carry."""
    found = yield from _carries_of(x, y, carry, alone=True)
    return found.bits(slice(found.width - 1, None))


def _carries_in(steps: int, x: S, y: S) -> Circuit[S, S]:
    """The carries out of each place of x + y, in so many steps if that can be."""
    segments = _segments(x.width, steps)
    return (yield from (_skipping(segments, x, y) if segments else _carries_of(x, y, 0)))


@cache
def _segments(width: int, steps: int) -> tuple[int, ...]:
    """Places of each segment, the lowest first, of which each knows what it does to a carry when that arrives.

    Returns:
        None at all where there are too few steps for so many places.
    """
    for number in range(1, min(steps, width) + 1):
        first = steps + 1 - number
        sizes = [first, *range(first, steps)]
        if sum(sizes) >= width:
            left = [width, *(width - np.cumsum(sizes)).tolist()]
            return tuple(min(size, rest) for size, rest in zip(sizes, left, strict=False) if rest > 0)
    return ()


def _skipping(sizes: tuple[int, ...], x: S, y: S) -> Circuit[S, S]:
    """Carries by segments: what each generates, and whether it passes one on, beside the carries of the lowest."""
    starts = np.cumsum([0, *sizes[:-1]])
    passes = x ^ y
    # By segment: what its places generate, from its lowest on, and from where to where they pass a carry on.
    state = [x.constant(0)] * len(sizes)
    made: list[list[S]] = [[] for _ in sizes]
    passed: list[list[S]] = [[] for _ in sizes]
    arriving: S | None = None
    found: list[S] = []
    for step in range(sizes[0] + len(sizes) - 1):
        active = [place for place, size in enumerate(sizes) if step < size]
        one, other = [], []
        for place in active:
            at = starts[place] + step
            one.append(_bit(x, at) ^ state[place])
            other.append(_bit(y, at) ^ state[place])
        longer = [place for place in active if place and step]
        for place in longer:
            one.append(passed[place][-1])
            other.append(_bit(passes, starts[place] + step))
        due = step - sizes[0] + 1
        if due > 0:
            if arriving is None:
                raise AssertionError("the lowest segment ends before others wait for it")
            one += passed[due]
            other += [arriving] * len(passed[due])
        ands = yield _stacked(one), _stacked(other)
        parts = iter([_bit(ands, place) for place in range(ands.width)])
        for place in active:
            state[place] = next(parts) ^ state[place]
            made[place].append(state[place])
            if not step and place:
                passed[place].append(_bit(passes, starts[place]))
        for place in longer:
            passed[place].append(next(parts))
        if due >= 0:
            found += [each ^ next(parts) for each in made[due]] if due else made[0]
            arriving = found[-1]
    return _stacked(found)


def _carries_of(x: S, y: S, carry: int, *, alone: bool = False) -> Circuit[S, S]:
    """The carries out of each place of x + y + carry; if `alone`, only the highest means something."""
    generates = yield x, y
    passes = x ^ y
    if carry:  # the lowest place generates one where it would pass one on
        lowest = slice(0, 1)
        generates = generates.replaced(lowest, generates.bits(lowest) ^ passes.bits(lowest))
    for higher, lower, passing in _prefix_steps(x.width, alone):
        still, below = higher[passing], lower[passing]
        ands = yield (
            _stacked([passes.bits(higher), passes.bits(still)]),
            _stacked([generates.bits(lower), passes.bits(below)]),
        )
        generates = generates.replaced(higher, generates.bits(higher) ^ ands.bits(slice(0, len(higher))))
        passes = passes.replaced(still, ands.bits(slice(len(higher), None)))
    return generates


@cache
def _prefix_steps(width: int, alone: bool) -> list[tuple[Places, Places, NDArray[np.bool_]]]:
    """By step: the places that take up what lower ones generate, these, and which of them may still pass a carry on."""
    wanted, steps = set(range(width)) if not alone else {width - 1}, []
    for level in reversed(range((width - 1).bit_length())):
        higher = np.array(sorted(place for place in wanted if place >> level & 1), np.int64)
        lower = (higher >> level << level) - 1
        wanted |= set(lower.tolist())
        steps.append((higher, lower, higher >> level > 1))
    return [each for each in reversed(steps) if len(each[0])]


def _bit(share: S, place: int) -> S:
    return share.bits(slice(place, place + 1))


def _complement(like: S, number: int) -> S:
    """The public number's complement, to be added with a carry of 1, as shares."""
    return _stacked([like.constant(1 - (number >> place & 1)) for place in range(like.width)])
