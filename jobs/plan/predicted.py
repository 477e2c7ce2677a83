"""From what parties publish of their datasets to what a job may find there: the least, the likely, and the most.

Parties publish a few coarse numbers, and the same for every job. A number may be any that is published as it; between
two supports, or below the floor, a wide range is honest. The likely value in it is a guess, made so:

* the number of frequent itemsets follows a straight line on logarithmic scales between two supports that are published
* of fewer than `FLOOR` items there are some dozens, and of each length more a third
* of itemsets that are brought into a union a seventh is new to the others

All parties are taken to be of one kind, as far as they publish the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb, exp, log, sqrt
from typing import Final, Literal

from crypto.params import STANDARD_128
from jobs.kinds.registry import kind_of
from jobs.plan.answer import Answer, ColumnSizes, ItemsetSizes, SetSize
from jobs.plan.privacy import published_left
from jobs.spec.job import JobSpec
from mining.joint.horizontal.level_wise import INDEX_BYTES
from mining.joint.horizontal.one_shot import index_width
from mining.joint.parameters import HorizontalMining, most_mined
from mining.pairs import n_pairs
from mining.public_sizes import FLOOR, LONGEST, WHOLE, PublicSizes, between
from mining.thresholds import local_threshold, minimum_count
from protos.v1.plan_pb2 import PartyEstimate
from protos.v1.plan_pb2 import PublicSizes as SizesMessage

End = Literal["least", "likely", "most"]

CLASSES: Final = 8  # of support
_SOME: Final = 40  # where fewer than `FLOOR` are published
_SHORTER: Final = 3  # times as many of a length as of one item more, below the floor
_STEEP: Final = 2  # the exponent by which itemsets may grow below the lowest support that is published
_BELOW: Final = 2.5  # how far below that a plan looks
_NEW: Final[Mapping[End, float]] = {"least": 0.0, "likely": 0.15, "most": 1.0}
_NAME_BYTES: Final[Mapping[End, int]] = {"least": 3, "likely": 12, "most": 33}  # of an item
_MAXIMAL: Final[Mapping[End, float]] = {"least": 0.1, "likely": 0.6, "most": 1.0}  # of frequent itemsets
_MOST_ITEMS: Final = 20_000  # of a party over columns: the time of a plan is bounded
_COLUMNS, _COLUMN_BYTES, _ITEM_BYTES = 10, 16, 24  # of a table, where only its sizes are published

Numbers = tuple[float, ...]


def sizes_of(published: SizesMessage) -> PublicSizes:
    """What a party has published."""
    frequent = tuple((each.support, tuple(each.itemsets)) for each in published.frequent)
    return PublicSizes(published.rows or None, published.items or None, frequent, published.level_ms or None)


def sizes_message(sizes: PublicSizes) -> SizesMessage:
    """The sizes as they are published: coarse, however they were written."""
    published = sizes.coarse()
    frequent = [{"support": support, "itemsets": numbers} for support, numbers in published.frequent]
    numbers = {"rows": published.rows or 0, "items": published.items or 0, "level_ms": published.level_ms or 0}
    return SizesMessage(**numbers, frequent=frequent)  # type: ignore[arg-type]


def predicted(spec: JobSpec, published: Mapping[str, PartyEstimate], end: End) -> dict[str, Answer]:
    """What each party is taken to be, in the order of the job.

    Args:
        spec: The job.
        published: By party what it has published.
        end: Which end of the range, or what is likely.
    """
    public = {name: sizes_of(published[name].sizes) for name in spec.job.parties}
    rows = {name: _of(sizes.rows, end) for name, sizes in public.items()}
    found = {}
    for name, sizes in public.items():
        told, level_ms = published[name], _of(sizes.level_ms, end)
        found[name] = Answer(
            party=name,
            speed=told.speed,
            certificate_bytes=told.certificate_bytes,
            n_rows=rows[name],
            sizes=_sizes(spec, sizes, rows, name, end),
            left=published_left(told),
            block_bytes=told.block_bytes if told.HasField("block_bytes") else None,
            level_s=None if level_ms is None else level_ms / 1000,
        )
    return found


def _of(published: int | None, end: End) -> int | None:
    if published is None:
        return None
    least, most = between(published)
    return {"least": least, "likely": published, "most": most}[end]


def _sizes(
    spec: JobSpec, public: PublicSizes, all_rows: Mapping[str, int | None], me: str, end: End
) -> ItemsetSizes | None:
    """Nothing where the job mines no itemsets, or depends on no counts of them, or the party publishes too little."""
    if spec.itemsets_ is None or spec.itemsets.min_support_ is None:
        return None
    asked = spec.itemsets.min_support
    if spec.is_vertical:
        rows = max(all_rows[me] or spec.plan.rows or spec.alignment.bound or 1, 1)
        return _columns(spec, public, min(1.0, asked / rows) if isinstance(asked, int) else float(asked), end)
    task = kind_of(spec).mined_as(spec)
    if task is None or all_rows[me] is None:
        return None
    published = [rows for rows in all_rows.values() if rows is not None]
    n_rows = max(1, round(sum(published) * len(all_rows) / len(published)))
    if isinstance(asked, int):
        n_rows = max(n_rows, asked)
    own_rows = max(all_rows[me] or 1, 1)
    least = minimum_count(asked, n_rows)
    local = local_threshold(asked, own_rows, least, len(all_rows), task.lambda_, n_rows)
    joint = frequent_at(public, float(Fraction(least, n_rows)), end)
    own = frequent_at(public, min(1.0, local / own_rows), end)
    if joint is None or own is None:
        return None
    return _horizontal(task, public, joint, own, end)


# -- how many itemsets are frequent ------------------------------------------------------------------------------------
def frequent_at(public: PublicSizes, share: float, end: End) -> Numbers | None:
    """How many itemsets of 1, 2, 3, … items are frequent at a support; None where what is published does not reach it.

    Args:
        public: What is published.
        share: The support, as a share of the rows.
        end: Which end of the range, or what is likely.
    """
    points = [(support / WHOLE, _known(numbers, end)) for support, numbers in public.frequent]
    above = [point for point in points if point[0] >= share]
    below = [point for point in points if point[0] <= share]
    if not points or (not below and share * _BELOW < above[-1][0]):
        return None
    found: Numbers
    match end:
        case "least":
            found = above[-1][1] if above else (0.0,) * LONGEST
        case "most":
            found = (
                below[0][1] if below else tuple(number * (above[-1][0] / share) ** _STEEP for number in above[-1][1])
            )
        case "likely" if above and below:
            found = _on_a_line(above[-1], below[0], share)
        case "likely":
            support, numbers = above[-1] if above else below[0]
            found = tuple(number * support / share for number in numbers)
    items = _of(public.items, end)
    if items is not None:
        found = (min(found[0], items), *found[1:])
    return tuple(map(round, found))


def _known(numbers: Sequence[int], end: End) -> Numbers:
    """What published numbers of itemsets may be, by length."""
    found = list[float]()
    for place in range(LONGEST):
        published = numbers[place] if place < len(numbers) else 0
        if published:
            found.append(_of(published, end) or 0)
        elif end == "least":
            found.append(0)
        elif end == "likely":
            found.append(min(_SOME, found[-1] // _SHORTER) if found else _SOME)
        else:
            found.append(min(FLOOR - 1, joined(round(found[-1]), place + 1)) if found else FLOOR - 1)
    return tuple(found)


def _on_a_line(above: tuple[float, Numbers], below: tuple[float, Numbers], share: float) -> Numbers:
    if above[0] == below[0]:
        return above[1]
    part = log(above[0] / share) / log(above[0] / below[0])
    half = 0.5  # in the place of none
    return tuple(
        exp((1 - part) * log(max(few, half)) + part * log(max(many, half))) if many else 0.0
        for few, many in zip(above[1], below[1], strict=True)
    )


def joined(itemsets: int, length: int) -> int:
    """The most sets of `length` items all of whose subsets of one item fewer are among so many (Kruskal, Katona)."""
    if length == 2:
        return n_pairs(itemsets)
    found, left = 0, itemsets
    for size in range(length - 1, 0, -1):
        if left <= 0:
            break
        most = bisect_right(range(left + size + 1), left, key=lambda n: comb(n, size)) - 1
        left -= comb(most, size)
        found += comb(most, size + 1)
    return found


# -- what a party would count and bring --------------------------------------------------------------------------------
def _horizontal(task: HorizontalMining, public: PublicSizes, joint: Numbers, own: Numbers, end: End) -> ItemsetSizes:
    numbers = [int(number) for number in joint]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    longer = tuple(_set(number, end) for number in own[1:] if number)
    closure = sum(each.elements for each in longer)
    mean = sum(length * each.elements for length, each in enumerate(longer, 2)) / max(1, closure)
    items = {"least": 2, "likely": mean, "most": 1 + len(longer)}[end]
    index_bytes = round(items * index_width(max(1, min(numbers[0], STANDARD_128.max_elements))))
    return ItemsetSizes(
        candidates=_candidates(task, numbers, end),
        frequent=tuple(numbers),
        items=_set(own[0], end, _NAME_BYTES[end]),
        held=_held(public, end),
        rules=_rules(numbers, end),
        itemsets=SetSize(
            round(closure * (1.0 if task.union == "all" else _MAXIMAL[end])),
            index_bytes,
            _NEW[end],
        )
        if closure <= most_mined(task)
        else None,
        closure=_set(closure, end),
        levels=longer,
    )


def _set(elements: float, end: End, element_bytes: int = INDEX_BYTES) -> SetSize:
    """A set that a union can hold: with a larger one the job would end."""
    return SetSize(min(round(elements), STANDARD_128.max_elements), element_bytes, _NEW[end])


def _held(public: PublicSizes, end: End) -> SetSize | None:
    """All items that occur; where that is not published, at least those that are frequent at the lowest support."""
    if public.items is not None:
        return _set(_of(public.items, end) or 0, end, _NAME_BYTES[end])
    if end == "most":
        return None
    return _set(_known(public.frequent[-1][1], end)[0], end, _NAME_BYTES[end])


def _candidates(task: HorizontalMining, frequent: Sequence[int], end: End) -> tuple[int, ...]:
    """Of each length those whose subsets are all frequent: at least those that are frequent themselves."""
    found = [frequent[0], n_pairs(frequent[0])]
    for length, shorter in enumerate(frequent[1:], 3):
        least = frequent[length - 1] if length <= len(frequent) else 0
        most = min(joined(shorter, length), task.max_candidates + 1)
        likely = round(sqrt(max(least, 0.5) * max(most, 0.5)))
        found.append({"least": least, "likely": min(max(least, likely), most), "most": most}[end])
        if not found[-1]:
            break
    return tuple(number for place, number in enumerate(found, 1) if number and task.allows(place))


def _rules(frequent: Sequence[int], end: End) -> tuple[int, ...]:
    """Those with one item on the right, which are all examined; longer ones are examined where shorter ones hold."""
    found = []
    for size in range(1, len(frequent)):
        most = sum(comb(length, size) * number for length, number in enumerate(frequent, 1) if length > size)
        number = most if size == 1 else {"least": 0, "likely": most >> 2 * size - 2, "most": most}[end]
        if not number:
            break
        found.append(number)
    return tuple(found)


def _columns(spec: JobSpec, public: PublicSizes, share: float, end: End) -> ItemsetSizes | None:
    """Of a table: the itemsets by classes of support; what the job takes for granted comes before a guess."""
    ends = [frequent_at(public, share ** (place / CLASSES), end) for place in range(1, CLASSES + 1)]
    given = spec.plan.items
    if ends[-1] is None:
        if given is None:
            return None
        return ItemsetSizes((given, n_pairs(given)), (given,), SetSize(given))
    known = [numbers or (0.0,) * LONGEST for numbers in ends]
    by_support = []
    for place in range(LONGEST):
        counts = [min(int(numbers[place]), _MOST_ITEMS) for numbers in known]
        by_support.append(tuple(max(0, b - a) for a, b in zip([0, *counts], counts, strict=False)))
    if given is not None and known[-1][0] < FLOOR:
        by_support[0] = _at_density(given, share, spec)
    while len(by_support) > 1 and not sum(by_support[-1]):
        by_support.pop()
    items = sum(by_support[0])
    frequent = [sum(classes) for classes in by_support]
    candidates = (items, n_pairs(items), *(joined(number, length) for length, number in enumerate(frequent[1:], 3)))
    columns = ColumnSizes(_COLUMNS, _COLUMN_BYTES, _ITEM_BYTES, tuple(by_support))
    return ItemsetSizes(candidates, tuple(frequent), SetSize(items), columns=columns)


def _at_density(items: int, share: float, spec: JobSpec) -> tuple[int, ...]:
    """So many items in the class of the density that the job states; in the lowest where it states none."""
    place = CLASSES - 1
    if spec.plan.density is not None and 0 < share < 1:
        place = min(place, max(0, int(log(float(spec.plan.density)) / log(share) * CLASSES)))
    return tuple(items * (number == place) for number in range(CLASSES))
