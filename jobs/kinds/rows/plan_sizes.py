"""From what the parties publish to the sizes of the joint run: what is expected, and what the job's limits allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

from crypto.primitives.blocks import blocks_needed
from crypto.protocols.union.costs import UnionSizes
from crypto.protocols.union.lists import (
    EPSILON_COMMON,
    MAX_BLOCKS,
    ListSizes,
    common_fakes,
    spare_for_common_fakes,
    widened,
)
from crypto.protocols.union.size_classes import SETS
from jobs.plan.answer import Answer, ItemsetSizes, SetSize
from mining.candidates import most_after
from mining.joint.disclosure import may_be_one_shot
from mining.joint.horizontal.hidden_sizes import HiddenSizes
from mining.joint.horizontal.level_wise import INDEX_BYTES
from mining.joint.horizontal.strategy import choose, thins
from mining.joint.parameters import MAX_ONE_SHOT_LENGTH, HorizontalMining, most_enumerated
from mining.joint.shared_rules import LARGEST, rules_openings
from mining.joint.sizes import MiningSizes
from mining.pairs import n_pairs
from mining.thresholds import minimum_count

_MANY_ROWS: Final = 1 << 40  # where nobody says how many there are


@dataclass(frozen=True)
class Expected:
    """What is expected of a run.

    Attributes:
        sizes: Of its sums and unions.
        n_rows: Of all parties.
        strategy: That the parties take.
        beyond: The first length whose candidates are over the job's limit: there the job would end.
    """

    sizes: MiningSizes
    n_rows: int
    strategy: str
    beyond: int | None = None


def total_rows(answers: Mapping[str, Answer]) -> int | None:
    """The rows of all parties; who hides them counts as the mean of the others. None where all hide them."""
    published = [answer.n_rows for answer in answers.values() if answer.n_rows is not None]
    return round(sum(published) * len(answers) / len(published)) if published else None


def expected(task: HorizontalMining, answers: Mapping[str, Answer]) -> Expected | None:
    """What all parties' answers let expect; None where none publishes its sizes, or one none that this task needs.

    A party that hides its sizes is taken to be like the others together.
    """
    sized = _sized(answers)
    n_rows = total_rows(answers)
    if not sized or not n_rows:
        return None
    n_rows = max(n_rows, _count(task))
    candidates = _numbers(answers, lambda each: each.candidates)
    n_items = candidates[0] if candidates else 0
    least = minimum_count(task.min_support, n_rows)
    strategy = choose(task, n_items, len(answers), least)
    tried = strategy == "one-shot" and task.allows(2)
    if (task.hides_names or task.universe == "all-items") and any(each.held is None for each in sized.values()):
        return None
    together = n_rows // 2 if task.all_learn(answers) else None  # two items in more than half of all rows are rare
    none = MiningSizes(n_rows, 0, None, tried=tried, frequent=_frequent(task, answers), together=together)
    found = _level_1(task, answers, none)
    if task.rules is not None:
        found = replace(found, rules=_numbers(answers, lambda each: each.rules))
    if tried and all(each.itemsets is not None for each in sized.values()):
        union = _union(task, answers, lambda each: each.itemsets)
        closure = _union(task, answers, lambda each: each.closure).elements
        return Expected(replace(found, one_shot=union, closure=closure), n_rows, strategy)
    counted, beyond = [], None
    for length, number in enumerate(candidates[1:], 2):
        if number > most_after(enumerate(found.frequent[1 : length - 1], 2), length, task.max_candidates):
            beyond = length
        if beyond is not None or not number:
            break
        counted.append(number)
    if thins(task, len(answers), least):
        thinned = tuple(_thinned(task, answers, place, number) for place, number in enumerate(counted))
    else:
        thinned = ()
    frequent = found.frequent[: 1 + len(counted)]
    found = replace(found, candidates=tuple(counted), thinned=thinned, frequent=frequent)
    return Expected(found, n_rows, "level-wise", beyond)


def allowed(task: HorizontalMining, parties: Sequence[str]) -> list[MiningSizes]:
    """The largest sizes that the job's own limits allow, by strategy, whatever the parties hold."""
    levels = min(task.max_length or MAX_ONE_SHOT_LENGTH, MAX_ONE_SHOT_LENGTH)
    capacity = SETS.rounded(task.bound or MAX_BLOCKS)
    universe = len(parties) * capacity if task.catalogue is None else len(task.catalogue)
    first = MiningSizes(_most_rows(task), universe, None)
    if task.hides_names:
        most = dict.fromkeys(parties, capacity)
        hidden = HiddenSizes.of(most, most, min(universe, MAX_BLOCKS), blocks_needed(task.max_item_bytes), task.bound)
        first = replace(first, hidden=hidden)
    elif task.catalogue is None:
        first = replace(first, items=_largest(task, parties, task.max_item_bytes))
    candidates = (min(n_pairs(universe), task.max_candidates), *(task.max_candidates for _ in range(3, levels + 1)))
    candidates = candidates[: max(levels - 1, 0)]
    longest = _largest(task, parties, INDEX_BYTES)
    thinned = tuple(replace(longest, elements=min(longest.elements, number)) for number in candidates if task.thin)
    rules = tuple(line.maximum for line in rules_openings(task, tuple(parties)))
    first = replace(first, frequent=(universe, *candidates), rules=rules)
    found = [replace(first, candidates=candidates, thinned=thinned)]
    if may_be_one_shot(task):
        union = _largest(task, parties, INDEX_BYTES * levels)
        closure = most_enumerated(task)
        found.append(replace(first, one_shot=union, closure=closure, tried=True, frequent=(universe, closure)))
    return found


def _most_rows(task: HorizontalMining) -> int:
    """Rows where nobody says how many there are; no more than rules can be decided on for."""
    if task.rules is None:
        return _MANY_ROWS
    return min(_MANY_ROWS, (LARGEST - 1) // Fraction(task.rules.min_confidence).denominator)


def _level_1(task: HorizontalMining, answers: Mapping[str, Answer], found: MiningSizes) -> MiningSizes:
    """With what level 1 depends on."""
    if task.catalogue is not None:
        return replace(found, universe=len(task.catalogue))
    if task.hides_names:
        return replace(found, hidden=_hidden(task, answers, found.frequent_of(1)))
    items = _union(task, answers, lambda each: each.held if task.universe == "all-items" else each.items)
    return replace(found, items=items, universe=items.elements)


def _sized(answers: Mapping[str, Answer]) -> dict[str, ItemsetSizes]:
    """The sizes of those that publish them."""
    return {name: answer.sizes for name, answer in answers.items() if answer.sizes is not None}


def _frequent(task: HorizontalMining, answers: Mapping[str, Answer]) -> tuple[int, ...]:
    found = _numbers(answers, lambda each: each.frequent)
    return found if task.max_length is None else found[: task.max_length]


def _numbers(answers: Mapping[str, Answer], of: Callable[[ItemsetSizes], Sequence[int]]) -> tuple[int, ...]:
    """Place by place the middle of what the parties are taken to find; a place that is missing is zero."""
    longest = max(len(of(sizes)) for sizes in _sized(answers).values())
    return tuple(
        round(_middle(answers, lambda each, place=place: [*of(each), *[0] * longest][place]))  # type: ignore[misc]
        for place in range(longest)
    )


def _count(task: HorizontalMining) -> int:
    """The rows that there must be at least: rounded numbers may be fewer."""
    return task.min_support if isinstance(task.min_support, int) else 1


def _middle(answers: Mapping[str, Answer], of: Callable[[ItemsetSizes], float]) -> float:
    """The median over the parties, weighted by their rows: a few rows may publish anything."""
    published = sorted((of(sizes), max(answers[name].rows, 1)) for name, sizes in _sized(answers).items())
    half = sum(weight for _, weight in published) / 2
    reached = list(accumulate(weight for _, weight in published))
    place = next(index for index, weight in enumerate(reached) if weight >= half)
    value = published[place][0]
    return (value + published[place + 1][0]) / 2 if reached[place] == half else value


def _union(
    task: HorizontalMining, answers: Mapping[str, Answer], choose_set: Callable[[ItemsetSizes], SetSize | None]
) -> UnionSizes:
    """The union of one set of each party; who hides its own is taken to hold as much as the others on average."""
    published = {name: choose_set(sizes) or SetSize(0) for name, sizes in _sized(answers).items()}
    average = round(sum(each.elements for each in published.values()) / len(published))
    held = {name: published[name].elements if name in published else average for name in answers}
    most = max(held.values())
    novelty = _middle(answers, lambda each: (choose_set(each) or SetSize(0)).novelty)
    united = most + round(novelty * (sum(held.values()) - most))
    blocks_each = max(1, *(each.blocks for each in published.values()))
    common = _middle(answers, lambda each: (choose_set(each) or SetSize(0)).common)
    return UnionSizes.expected(held, united, blocks_each, task.bound, common=common)


def _hidden(task: HorizontalMining, answers: Mapping[str, Answer], frequent: int) -> HiddenSizes:
    """The lists of a hidden universe, which are filled up to size classes.

    Who hides its sizes is taken to hold as much as the largest other.
    """
    published = _sized(answers)
    held = {name: (sizes.held or SetSize(0)).elements for name, sizes in published.items()}
    placed = {n: held[n] if task.universe == "hidden-all" else sizes.items.elements for n, sizes in published.items()}
    return HiddenSizes.of(
        {name: held.get(name, max(held.values())) for name in answers},
        {name: placed.get(name, max(placed.values())) for name in answers},
        frequent,
        max(1, *(sizes.items.blocks for sizes in published.values())),
        task.bound,
    )


def _thinned(task: HorizontalMining, answers: Mapping[str, Answer], place: int, candidates: int) -> UnionSizes:
    """The union of those of so many candidates that are locally frequent somewhere."""

    def at_level(sizes: ItemsetSizes) -> SetSize:
        found = sizes.levels[place] if place < len(sizes.levels) else SetSize(0)
        return found if found.elements <= candidates else replace(found, elements=candidates)

    union = _union(task, answers, at_level)
    return replace(union, elements=min(union.elements, candidates))


def _largest(task: HorizontalMining, parties: Sequence[str], element_bytes: int) -> UnionSizes:
    """The union of the longest lists that there can be, whose elements have up to so many bytes."""
    blocks_each = widened(blocks_needed(element_bytes))
    room = spare_for_common_fakes(len(parties), common_fakes(EPSILON_COMMON))
    if task.bound is None:
        most = max(1, MAX_BLOCKS // blocks_each - room)
    else:
        most = SETS.rounded(task.bound)
        blocks_each = max(1, min(blocks_each, MAX_BLOCKS // (most + room)))
    lists = ListSizes(len(parties), blocks_each, most, room)
    return UnionSizes(lists, lists.total, lists.most_elements)
