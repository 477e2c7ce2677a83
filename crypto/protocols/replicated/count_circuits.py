"""Circuits that count: in how many of its rows a column has a one, and whether these reach a threshold.

A column is a plane with a bit for each row. Of three bytes of one weight an adder makes one of that weight and one of
the next, at one AND a bit, for all columns and weights at once, until two bytes of each weight are left: so a column
of N rows takes about N ANDs, in about log N / log 1.5 steps. What is left are eight or sixteen short numbers for each
column, one or two for each bit of a byte, which are added up as `circuits` adds up the numbers of parties.

Source: trees of carry-saving adders, Wallace, "A Suggestion for a Fast Multiplier", IEEE Transactions on Electronic
Computers, 1964; counting by full adders, Boyar and Peralta, "Tight bounds for the multiplicative complexity of
symmetric functions", TCS 2008.
"""

from __future__ import annotations

from functools import cache

from crypto.primitives.shares.replicated_bits import ReplicatedBits
from crypto.protocols.replicated.circuits import Circuit, planes_by_step, reaching_sums
from crypto.protocols.replicated.verified_sums import nothing

_LANES = 8  # bits of a byte

Adders = tuple[tuple[int, int], ...]
"""Of one step: weights of which three bytes are added up, and how often."""


def count_width(rows: int) -> int:
    """Bits of a count of so many rows."""
    return max(2, rows.bit_length())


def frequent(
    columns: ReplicatedBits, others: ReplicatedBits | None, rows: int, threshold: int, *, few: bool
) -> Circuit[ReplicatedBits, tuple[ReplicatedBits, ReplicatedBits, ReplicatedBits]]:
    """Products of columns, their counts, and one plane: whether each reaches the threshold.

    Args:
        columns: One plane each, with zeros in what fills up the last byte.
        others: By which they are multiplied, plane by plane; None: the columns themselves are counted.
        rows: Of a column, public.
        threshold: From 1 to the number of rows.
        few: Whether steps are saved rather than ANDs, in comparisons.
    """
    products = columns if others is None else (yield columns, others)
    numbers = yield from counted(products, rows)
    sums, reached = yield from reaching_sums(numbers, threshold, few=few)
    return products, sums, reached


def counted(columns: ReplicatedBits, rows: int) -> Circuit[ReplicatedBits, list[ReplicatedBits]]:
    """Eight or sixteen numbers for each column, modulo 2^width, which add up to its count."""
    width = count_width(rows)
    steps, left = schedule(columns.both.shape[2], width)
    piles = {0: columns}
    for step in steps:
        threes = [[piles[weight].octets(slice(k * n, (k + 1) * n)) for k in range(3)] for weight, n in step]
        ands = yield (
            ReplicatedBits.joined([x ^ z for x, _, z in threes]),
            ReplicatedBits.joined([y ^ z for _, y, z in threes]),
        )
        parts = {weight: [pile] for weight, pile in piles.items()}
        start = 0
        for (weight, n), (x, y, z) in zip(step, threes, strict=True):
            parts[weight][:1] = [x ^ y ^ z, piles[weight].octets(slice(3 * n, None))]
            parts.setdefault(weight + 1, []).append(ands.octets(slice(start, start + n)) ^ z)
            start += n
        piles = {weight: ReplicatedBits.joined(each) for weight, each in parts.items()}
    if left[-1]:  # what the highest weight carries is no number of rows
        top, *more = (piles[width - 1].octets(slice(place, place + 1)) for place in range(left[-1]))
        for each in more:
            top = top ^ each
        piles[width - 1] = top
    by_weight = {weight: pile.transposed() for weight, pile in piles.items()}
    none = by_weight[0].constant(0)

    def bit(weight: int, place: int) -> ReplicatedBits:
        pile = by_weight.get(weight)
        return none if pile is None or place >= pile.width else pile.bits(slice(place, place + 1))

    return [ReplicatedBits.stacked([bit(weight, place) for weight in range(width)]) for place in range(_numbers(left))]


@cache
def schedule(octets: int, width: int) -> tuple[tuple[Adders, ...], tuple[int, ...]]:
    """The adders of each step, and how many bytes of each weight are left, for columns of so many bytes."""
    piles, steps = [octets, *[0] * (width - 1)], list[Adders]()
    while step := tuple((weight, pile // 3) for weight, pile in enumerate(piles[:-1]) if pile > 2):
        for weight, number in step:
            piles[weight] -= 2 * number
            piles[weight + 1] += number
        steps.append(step)
    return tuple(steps), tuple(piles)


def and_bytes(columns: int, rows: int, *, products: bool, few: bool) -> list[int]:
    """Bytes of ANDs of `frequent`, step by step, of so many columns."""
    octets, width = -(-rows // 8), count_width(rows)
    steps, left = schedule(octets, width)
    found = [columns * octets] * products
    found += [columns * sum(number for _, number in step) for step in steps]
    return [*found, *(planes * -(-columns // 8) for planes in _planes_of_reaching(_numbers(left), width, few))]


def _numbers(left: tuple[int, ...]) -> int:
    """How many numbers of a column are to be added up, of so many bytes of each weight."""
    return _LANES * max(min(left[-1], 1), *left[:-1])


@cache
def _planes_of_reaching(numbers: int, width: int, few: bool) -> tuple[int, ...]:
    given = nothing(numbers, width)
    return tuple(planes_by_step(reaching_sums(given, 1, few=few), given[0]))
