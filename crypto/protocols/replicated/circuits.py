"""Circuits on replicated bits: sums of numbers, and whether they reach a threshold.

A circuit is a generator: it yields the operands of ANDs that may be taken at once, as stacks of planes, and gets their
ANDs. XORs it takes itself, as they need no message. So any circuits can be evaluated side by side, or only counted.

Numbers are stacks of planes, plane i with bit i of every number. With few numbers carries are found by a parallel
prefix, in ⌈log2 width⌉ + 1 steps of many ANDs; with many one after the other, one AND a bit.

Source: majority by one AND, Boyar, Peralta and Pochuev, "On the multiplicative complexity of Boolean functions over the
basis (∧, ⊕, 1)", TCS 2000; prefixes, Kogge and Stone, IEEE TC 1973.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from crypto.primitives.shares.replicated_bits import ReplicatedBits

T = TypeVar("T")
Circuit = Generator[tuple[ReplicatedBits, ReplicatedBits], ReplicatedBits, T]

_stacked = ReplicatedBits.stacked


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
    u, v = yield from carry_saved([x, y, _complement(x, threshold)])
    low = slice(0, width)
    carries, borrows = yield from _prefixes_of([x.bits(low), u.bits(low)], [y.bits(low), v.bits(low)], (0, 1))
    found = (x ^ y).bits(low) ^ _stacked([x.constant(0), carries.bits(slice(0, width - 1))])
    sign = _bit(u, width) ^ _bit(v, width) ^ _bit(borrows, width - 1)
    return found, sign.inverted()


def sums(numbers: Sequence[ReplicatedBits]) -> Circuit[ReplicatedBits]:
    """The sums modulo 2^width of two or more numbers of one width, in few steps."""
    x, y = yield from carry_saved(numbers)
    low = slice(0, x.width - 1)
    (carries,) = yield from _prefixes_of([x.bits(low)], [y.bits(low)], (0,))
    return x ^ y ^ _stacked([x.constant(0), carries])


def above(numbers: Sequence[ReplicatedBits], limits: Sequence[ReplicatedBits], *, few: bool) -> Circuit[ReplicatedBits]:
    """One plane for each: whether the numbers are above the limits."""
    width = numbers[0].width
    if few:
        carries = yield from _prefixes_of(list(limits), [each.inverted() for each in numbers], [1] * len(numbers))
        return _stacked([each.bits(slice(width - 1, None)).inverted() for each in carries])
    reached = _stacked([limits[0].constant(1)] * len(numbers))
    for place in range(width):
        of_limits = _stacked([_bit(each, place) for each in limits])
        of_numbers = _stacked([_bit(each, place).inverted() for each in numbers])
        ands = yield of_limits ^ reached, of_numbers ^ reached
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


def _prefixes_of(
    xs: Sequence[ReplicatedBits], ys: Sequence[ReplicatedBits], carries: Sequence[int]
) -> Circuit[list[ReplicatedBits]]:
    """The carries out of each place of x + y + carry, of several pairs side by side."""
    width, pairs = xs[0].width, len(xs)
    generated = yield _stacked(xs), _stacked(ys)
    generates = [generated.bits(slice(place * width, (place + 1) * width)) for place in range(pairs)]
    passes = [x ^ y for x, y in zip(xs, ys, strict=True)]
    for place, carry in enumerate(carries):
        if carry:  # the lowest place generates one where it would pass one on
            low = _bit(generates[place], 0) ^ _bit(passes[place], 0)
            generates[place] = _stacked([low, generates[place].bits(slice(1, None))])
    step = 1
    while step < width:
        high, low_places, size = slice(step, None), slice(0, width - step), width - step
        ands = yield (
            _stacked([each.bits(high) for each in passes] * 2),
            _stacked([each.bits(low_places) for each in [*generates, *passes]]),
        )
        of = [ands.bits(slice(place * size, (place + 1) * size)) for place in range(2 * pairs)]
        generates = [_stacked([g.bits(slice(0, step)), g.bits(high) ^ of[place]]) for place, g in enumerate(generates)]
        passes = [_stacked([p.bits(slice(0, step)), of[pairs + place]]) for place, p in enumerate(passes)]
        step *= 2
    return generates


def _bit(share: ReplicatedBits, place: int) -> ReplicatedBits:
    return share.bits(slice(place, place + 1))


def _complement(like: ReplicatedBits, number: int) -> ReplicatedBits:
    """The public number's complement, to be added with a carry of 1, as shares."""
    return _stacked([like.constant(1 - (number >> place & 1)) for place in range(like.width)])
