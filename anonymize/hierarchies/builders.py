"""Hierarchies made by rule: intervals, bins, runs of ordered values, masked codes, calendars and groups of labels."""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, get_args

from anonymize.cells import format_interval
from anonymize.columns import Value, listed, text_of
from anonymize.hierarchies.hierarchy import TOP, Hierarchy
from anonymize.models.rationals import exact
from link.errors import ConfigurationError, InputDataError

Period = Literal["month", "quarter", "year", "decade", "century"]

_PERIODS: Final[dict[Period, Callable[[datetime.date], str]]] = {
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "decade": lambda day: f"{day.year // 10 * 10:04}s",
    "century": lambda day: f"{day.year // 100 * 100:04}-{day.year // 100 * 100 + 99:04}",
}


def intervals(
    numbers: Iterable[int | float], widths: Sequence[int | float], origin: int | float = 0, *, name: str = ""
) -> Hierarchy:
    """Numbers, then ever wider intervals, then `*`.

    Whole numbers in intervals of whole widths give `[20, 29]`, others `[0.5, 1)`. Numbers and widths are taken as the
    decimals that are written.

    Args:
        numbers: The leaves; each once. List all that may occur, whether the data holds them or not: losses count them.
        widths: Of the intervals of each level, each a multiple of the one before.
        origin: Where one of the intervals begins.
        name: Of the column.

    Raises:
        ConfigurationError: A width is not above 0, or no multiple of the one before.
    """
    values = sorted(set(numbers))
    start, steps = exact(origin, "origin"), [exact(width, "A width") for width in widths]
    below: Fraction | None = None
    for width, step in zip(widths, steps, strict=True):
        if step <= 0 or (below is not None and (step / below).denominator != 1):
            raise ConfigurationError(
                f"The interval width {width} must be above 0 and a multiple of the one before, so that levels nest."
            )
        below = step
    whole = all(number.denominator == 1 for number in (start, *steps, *(exact(v, "A number") for v in values)))

    def label(value: int | float, step: Fraction) -> str:
        low = start + (exact(value, "A number") - start) // step * step
        if whole:
            return format_interval(int(low), int(low + step) - 1)
        return format_interval(float(low), float(low + step), half_open=True)

    return Hierarchy.of(name, [(text_of(v), *(label(v, step) for step in steps), TOP) for v in values])


def order(values: Sequence[Value], groups: Sequence[int | Sequence[int]], *, name: str = "") -> Hierarchy:
    """Ordered values, then ever longer runs of them, then `*`. A run is named by its ends: `[low, high]`.

    Args:
        values: Lowest first.
        groups: By level, how many labels of the level below make one: a number for all (the last one may be shorter),
            or one for each.
        name: Of the column.

    Raises:
        ConfigurationError: A number is below 1, or those of a level do not add up to the labels of the level below.
    """
    runs = [(place, place) for place in range(len(values))]  # of the level below, by their ends
    columns = [[text_of(value) for value in values]]
    for level, given in enumerate(groups, 1):
        sizes = [given] * -(-len(runs) // max(given, 1)) if isinstance(given, int) else list(given)
        if min(sizes, default=1) < 1 or (not isinstance(given, int) and sum(sizes) != len(runs)):
            raise ConfigurationError(
                f"The groups of level {level} are {given}; they must be at least 1 each and make up the {len(runs)} "
                f"labels of level {level - 1}."
            )
        merged, begin = [], 0
        for size in sizes:
            part = runs[begin : begin + size]
            merged.append((part[0][0], part[-1][1]))
            begin += size
        runs = merged
        columns.append([format_interval(values[a], values[b]) for a, b in runs for _ in range(a, b + 1)])
    return Hierarchy.of(name, list(zip(*columns, [TOP] * len(values), strict=True)))


def bins(ends: Sequence[int | float], groups: Sequence[int] = (), *, name: str = "") -> Hierarchy:
    """Bins of continuous numbers, then ever longer runs of them, then `*`: `[0, 0.5)`, `[0.5, 1]`, `[0, 1]`.

    The upper end belongs to the last bin only.

    Args:
        ends: Where bins begin, ascending, and where the last one ends.
        groups: By level, how many labels of the level below make one; the last one may be shorter.
        name: Of the column.

    Raises:
        ConfigurationError: There are fewer than two ends, they do not ascend, or a group is below 1.
    """
    if len(ends) < 2 or any(low >= high for low, high in itertools.pairwise(ends)):
        raise ConfigurationError("Bins need two ends or more, ascending.")
    if min(groups, default=1) < 1:
        raise ConfigurationError(f"The groups are {list(groups)}; each must be at least 1.")
    number, last = len(ends) - 1, ends[-1]

    def label(place: int, size: int) -> str:
        first = place // size * size
        low, high = ends[first], ends[min(first + size, number)]
        return format_interval(low, high, half_open=high != last)

    sizes = [1, *itertools.accumulate(groups, operator.mul)]
    return Hierarchy.of(name, [(*(label(place, size) for size in sizes), TOP) for place in range(number)])


def prefix(codes: Iterable[str], masked: Sequence[int], *, name: str = "") -> Hierarchy:
    """Codes, then codes whose last characters are masked, then `*`: `12345`, `1234*`, `12***`.

    Args:
        codes: The leaves; codes of several lengths are not mixed under a mask.
        masked: By level, how many characters are masked: ascending.
        name: Of the column.

    Raises:
        ConfigurationError: The numbers do not ascend from at least 1.
    """
    if list(masked) != sorted(set(masked)) or min(masked, default=1) < 1:
        raise ConfigurationError(f"The masked characters are {list(masked)}; they must ascend from level to level.")

    def label(code: str, count: int) -> str:
        hidden = min(count, len(code))
        return code[: len(code) - hidden] + "*" * hidden

    return Hierarchy.of(name, [(code, *(label(code, count) for count in masked), TOP) for code in dict.fromkeys(codes)])


def dates(
    days: Iterable[datetime.date], levels: Sequence[Period] = ("month", "quarter", "year", "decade"), *, name: str = ""
) -> Hierarchy:
    """Days, then the calendar's periods, then `*`: `2020-02-29`, `2020-02`, `2020-Q1`, `2020`, `2020s`.

    Args:
        days: The leaves.
        levels: Some of month, quarter, year, decade and century, in this order.
        name: Of the column.

    Raises:
        ConfigurationError: A level is none of these, or they are out of order.
    """
    known = get_args(Period)
    if list(levels) != [period for period in known if period in levels]:
        raise ConfigurationError(
            f"The levels of dates are {list(levels)}; they must be some of {', '.join(known)}, in this order."
        )
    rows = [(day.isoformat(), *(_PERIODS[period](day) for period in levels), TOP) for day in sorted(set(days))]
    return Hierarchy.of(name, rows)


def grouping(values: Iterable[Value], *mappings: Mapping[str, str], name: str = "") -> Hierarchy:
    """Values, then the groups that they are put in, groups of groups, then `*`.

    Args:
        values: The leaves.
        *mappings: By level, the label of each label of the level below.
        name: Of the column.

    Raises:
        InputDataError: A mapping lacks labels of the level below, which are named.
    """
    columns = [[text_of(value) for value in dict.fromkeys(values)]]
    for level, mapping in enumerate(mappings, 1):
        lacking = [label for label in dict.fromkeys(columns[-1]) if label not in mapping]
        if lacking:
            raise InputDataError(f'The groups of level {level} of column "{name}" lack {listed(lacking)}; add them.')
        columns.append([mapping[label] for label in columns[-1]])
    return Hierarchy.of(name, list(zip(*columns, strict=True)), add_top=True)


def flat(values: Iterable[Value], *, name: str = "") -> Hierarchy:
    """Values, then `*`."""
    return Hierarchy.of(name, [(text_of(value), TOP) for value in dict.fromkeys(values)])
