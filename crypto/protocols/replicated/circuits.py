"""Circuits on replicated bits: sums of numbers, and whether they reach a threshold.

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
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.replicated_bits import ReplicatedBits

T = TypeVar("T")
Circuit = Generator[tuple[ReplicatedBits, ReplicatedBits], ReplicatedBits, T]
Places = NDArray[np.int64]

_stacked = ReplicatedBits.stacked


def side_by_side(circuits: Sequence[Circuit[Any]]) -> Circuit[list[Any]]:
    """Evaluates circuits in common steps; their outputs."""
    outputs: list[Any] = [None] * len(circuits)
    asked: dict[int, tuple[ReplicatedBits, ReplicatedBits]] = {}
    ands: ReplicatedBits | None = None
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


def carry_saved(numbers: Sequence[ReplicatedBits]) -> Circuit[tuple[ReplicatedBits, ReplicatedBits]]:
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


def reaching_sums(
    numbers: Sequence[ReplicatedBits], threshold: int, *, few: bool
) -> Circuit[tuple[ReplicatedBits, ReplicatedBits]]:
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
    bits: list[ReplicatedBits] = []
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


def _reaching_in_few_steps(
    numbers: Sequence[ReplicatedBits], threshold: int
) -> Circuit[tuple[ReplicatedBits, ReplicatedBits]]:
    """Side by side, the sums and the sums less the threshold, whose highest bit, one more, is their sign."""
    width = numbers[0].width
    x, y = yield from carry_saved([_stacked([each, each.constant(0)]) for each in numbers])
    low = slice(0, width)
    steps = _steps_of_reaching(width)
    found, reached = yield from side_by_side([_sums_of(x.bits(low), y.bits(low), steps), _reaching(x, y, threshold)])
    return found, reached


def _sums_of(x: ReplicatedBits, y: ReplicatedBits, steps: int) -> Circuit[ReplicatedBits]:
    low = slice(0, x.width - 1)
    carries = yield from _carries_in(steps, x.bits(low), y.bits(low), 0)
    return x ^ y ^ _stacked([x.constant(0), carries])


def _steps_of_reaching(width: int) -> int:
    """Steps of `_reaching` of numbers of so many bits and one more."""
    return 2 + (width - 1).bit_length()


def _reaching(x: ReplicatedBits, y: ReplicatedBits, threshold: int) -> Circuit[ReplicatedBits]:
    """Whether x + y, whose highest bit is 0, reaches the threshold."""
    u, v = yield from carry_saved([x, y, _complement(x, threshold)])
    high, low = slice(x.width - 1, None), slice(0, x.width - 1)
    borrow = yield from _carry_out(u.bits(low), v.bits(low), 1)
    return (u.bits(high) ^ v.bits(high) ^ borrow).inverted()


def sums(numbers: Sequence[ReplicatedBits]) -> Circuit[ReplicatedBits]:
    """The sums modulo 2^width of two or more numbers of one width, in few steps."""
    x, y = yield from carry_saved(numbers)
    return (yield from _sums_of(x, y, 0))


def any_of(bits: Sequence[ReplicatedBits]) -> Circuit[ReplicatedBits]:
    """The ORs of these planes, place by place, in ⌈log2 of their number⌉ steps."""
    left = [each.inverted() for each in bits]
    while len(left) > 1:
        pairs, width = len(left) // 2, left[0].width
        ands = yield _stacked(left[: 2 * pairs : 2]), _stacked(left[1 : 2 * pairs : 2])
        left = [ands.bits(slice(place * width, (place + 1) * width)) for place in range(pairs)] + left[2 * pairs :]
    return left[0].inverted()


def above(numbers: Sequence[ReplicatedBits], limits: Sequence[ReplicatedBits], *, few: bool) -> Circuit[ReplicatedBits]:
    """One plane for each: whether the numbers are above the limits; in no more steps than `reaching_sums` of them."""
    width, count = numbers[0].width, len(numbers)
    # Bit 0 of all of them, then bit 1.
    order = np.arange(width * count).reshape(count, width).T.reshape(-1)
    of_limits, of_numbers = (_stacked(each).bits(order) for each in (limits, numbers))
    of_numbers = of_numbers.inverted()
    if few:
        steps = _steps_of_saving(count) + _steps_of_reaching(width)
        carries = yield from _carries_in(steps, of_limits, of_numbers, 1, count, alone=True)
        return carries.inverted()
    reached = _stacked([limits[0].constant(1)] * count)
    for start in range(0, width * count, count):
        place = slice(start, start + count)
        ands = yield of_limits.bits(place) ^ reached, of_numbers.bits(place) ^ reached
        reached = reached ^ ands
    return reached.inverted()


def planes_by_step(circuit: Circuit[T], like: ReplicatedBits) -> list[int]:
    """How many planes of ANDs the circuit asks for, step by step; its inputs are alike planes without a number."""
    found: list[int] = []
    try:
        operands, _ = next(circuit)
        while True:
            found.append(operands.width)
            operands, _ = circuit.send(_stacked([like.constant(0)] * operands.width))
    except StopIteration:
        return found


def _carry_out(x: ReplicatedBits, y: ReplicatedBits, carry: int, pairs: int = 1) -> Circuit[ReplicatedBits]:
    """The carry out of the highest place of x + y + carry, of several pairs side by side: bit 0 of all, then bit 1."""
    found = yield from _carries_of(x, y, carry, pairs, alone=True)
    return found.bits(slice(found.width - pairs, None))


def _steps_of_saving(numbers: int) -> int:
    """Steps of `carry_saved`."""
    steps = 0
    while numbers > 2:
        numbers, steps = numbers - numbers // 3, steps + 1
    return steps


def _carries_in(
    steps: int, x: ReplicatedBits, y: ReplicatedBits, carry: int, pairs: int = 1, *, alone: bool = False
) -> Circuit[ReplicatedBits]:
    """The carries out of each place of x + y + carry, or only out of the highest, in so many steps if that can be."""
    segments = _segments(x.width // pairs, steps)
    if segments:
        return (yield from _skipping(segments, x, y, carry, pairs, alone=alone))
    return (yield from (_carry_out if alone else _carries_of)(x, y, carry, pairs))


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


def _skipping(
    sizes: tuple[int, ...], x: ReplicatedBits, y: ReplicatedBits, carry: int, pairs: int, *, alone: bool
) -> Circuit[ReplicatedBits]:
    """Carries by segments: what each generates, and whether it passes one on, beside the carries of the lowest."""
    starts = np.cumsum([0, *sizes[:-1]])
    passes = x ^ y
    # By segment: what its places generate, from its lowest on, and from where to where they pass a carry on.
    generated = [[x.constant(carry if place == 0 else 0)] * pairs for place in range(len(sizes))]
    made: list[list[ReplicatedBits]] = [[] for _ in sizes]
    passed: list[list[ReplicatedBits]] = [[] for _ in sizes]
    state = [_stacked(each) for each in generated]
    arriving: ReplicatedBits | None = None
    found: list[ReplicatedBits] = []
    for step in range(sizes[0] + len(sizes) - 1):
        active = [place for place, size in enumerate(sizes) if step < size]
        one, other = [], []
        for place in active:
            at = slice((starts[place] + step) * pairs, (starts[place] + step + 1) * pairs)
            one.append(x.bits(at) ^ state[place])
            other.append(y.bits(at) ^ state[place])
        longer = [place for place in active if place and step]
        for place in longer:
            at = slice((starts[place] + step) * pairs, (starts[place] + step + 1) * pairs)
            one.append(passed[place][-1])
            other.append(passes.bits(at))
        due = step - sizes[0] + 1
        if due > 0:
            if arriving is None:
                raise AssertionError("the lowest segment ends before others wait for it")
            through = passed[due][-1:] if alone else passed[due]
            one += through
            other += [arriving] * len(through)
        ands = yield _stacked(one), _stacked(other)
        parts = iter([ands.bits(slice(start, start + pairs)) for start in range(0, ands.width, pairs)])
        for place in active:
            state[place] = next(parts) ^ state[place]
            made[place].append(state[place])
            if not step and place:
                at = slice(starts[place] * pairs, (starts[place] + 1) * pairs)
                passed[place].append(passes.bits(at))
        for place in longer:
            passed[place].append(next(parts))
        if due > 0:
            carried = made[due][-1:] if alone else made[due]
            found += [each ^ next(parts) for each in carried]
            arriving = found[-1]
        elif due == 0:
            found += made[0][-1:] if alone else made[0]
            arriving = found[-1]
    return found[-1] if alone else _stacked(found)


def _carries_of(
    x: ReplicatedBits, y: ReplicatedBits, carry: int, pairs: int = 1, *, alone: bool = False
) -> Circuit[ReplicatedBits]:
    """The carries out of each place of x + y + carry, of several pairs; if `alone`, only the highest mean something."""
    generates = yield x, y
    passes = x ^ y
    if carry:  # the lowest place generates one where it would pass one on
        lowest = slice(0, pairs)
        generates = generates.replaced(lowest, generates.bits(lowest) ^ passes.bits(lowest))
    for higher, lower, passing in _prefix_steps(x.width // pairs, alone):
        on, of, still, below = (_planes(each, pairs) for each in (higher, lower, higher[passing], lower[passing]))
        ands = yield (
            _stacked([passes.bits(on), passes.bits(still)]),
            _stacked([generates.bits(of), passes.bits(below)]),
        )
        generates = generates.replaced(on, generates.bits(on) ^ ands.bits(slice(0, len(on))))
        passes = passes.replaced(still, ands.bits(slice(len(on), None)))
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


def _planes(places: Places, pairs: int) -> Places:
    return (places[:, None] * pairs + np.arange(pairs)).reshape(-1)


def _bit(share: ReplicatedBits, place: int) -> ReplicatedBits:
    return share.bits(slice(place, place + 1))


def _complement(like: ReplicatedBits, number: int) -> ReplicatedBits:
    """The public number's complement, to be added with a carry of 1, as shares."""
    return _stacked([like.constant(1 - (number >> place & 1)) for place in range(like.width)])
