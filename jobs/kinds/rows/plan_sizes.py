"""From what the parties publish to the sizes of the joint run: what is expected, and what the job's limits allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Final

from crypto.protocols.union.prefix_costs import AskedBits
from crypto.protocols.union.size_classes import LISTS, SETS
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

ChooseSet = Callable[[ItemsetSizes], SetSize | None]


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
        union = _union(answers, lambda each: each.itemsets, INDEX_BYTES * MAX_ONE_SHOT_LENGTH)
        closure = _united(answers, lambda each: each.closure)
        return Expected(replace(found, one_shot=union, closure=closure), n_rows, strategy)
    counted, beyond = [], None
    for length, number in enumerate(candidates[1:], 2):
        if number > most_after(enumerate(found.frequent[1 : length - 1], 2), length, task.max_candidates):
            beyond = length
        if beyond is not None or not number:
            break
        counted.append(number)
    if thins(task, len(answers), least):
        thinned = tuple(_thinned(answers, place, number) for place, number in enumerate(counted))
    else:
        thinned = ()
    frequent = found.frequent[: 1 + len(counted)]
    found = replace(found, candidates=tuple(counted), thinned=thinned, frequent=frequent)
    return Expected(found, n_rows, "level-wise", beyond)


def allowed(task: HorizontalMining, parties: Sequence[str]) -> list[MiningSizes]:
    """The largest sizes that the job's own limits allow, by strategy, whatever the parties hold."""
    levels = min(task.max_length or MAX_ONE_SHOT_LENGTH, MAX_ONE_SHOT_LENGTH)
    capacity = SETS.rounded(task.bound or SETS.most)
    universe = len(parties) * capacity if task.catalogue is None else len(task.catalogue)
    first = MiningSizes(_most_rows(task), universe, None)
    if task.hides_names:
        most = dict.fromkeys(parties, LISTS.rounded(task.bound or LISTS.most))
        frequent = min(sum(most.values()), SETS.most)
        hidden = HiddenSizes.of(most, frequent, task.max_item_bytes, task.bound, task.max_item_bytes)
        first = replace(first, hidden=hidden)
    elif task.catalogue is None:
        first = replace(first, items=AskedBits.expected(universe, task.max_item_bytes, task.max_item_bytes))
    candidates = (min(n_pairs(universe), task.max_candidates), *(task.max_candidates for _ in range(3, levels + 1)))
    candidates = candidates[: max(levels - 1, 0)]
    united = len(parties) * capacity
    thinned = tuple(
        AskedBits.expected(min(united, number), INDEX_BYTES, INDEX_BYTES) for number in candidates if task.thin
    )
    rules = tuple(line.maximum for line in rules_openings(task, tuple(parties)))
    first = replace(first, frequent=(universe, *candidates), rules=rules)
    found = [replace(first, candidates=candidates, thinned=thinned)]
    if may_be_one_shot(task):
        union = AskedBits.expected(united, INDEX_BYTES * levels, INDEX_BYTES * levels)
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
    chosen: ChooseSet = lambda each: each.held if task.universe == "all-items" else each.items  # noqa: E731
    items = _union(answers, chosen, task.max_item_bytes)
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


def _united(answers: Mapping[str, Answer], choose_set: ChooseSet) -> int:
    """The union of one set of each party; who hides its own is taken to hold as much as the others on average."""
    published = {name: choose_set(sizes) or SetSize(0) for name, sizes in _sized(answers).items()}
    average = round(sum(each.elements for each in published.values()) / len(published))
    held = [published[name].elements if name in published else average for name in answers]
    novelty = _middle(answers, lambda each: (choose_set(each) or SetSize(0)).novelty)
    return max(held) + round(novelty * (sum(held) - max(held)))


def _union(answers: Mapping[str, Answer], choose_set: ChooseSet, max_element_bytes: int) -> AskedBits:
    element_bytes = round(_middle(answers, lambda each: (choose_set(each) or SetSize(0)).element_bytes))
    return AskedBits.expected(_united(answers, choose_set), element_bytes, max_element_bytes)


def _hidden(task: HorizontalMining, answers: Mapping[str, Answer], frequent: int) -> HiddenSizes:
    """The lists of a hidden universe, which are filled up to size classes.

    Who hides its sizes is taken to hold as much as the largest other.
    """
    published = _sized(answers)
    held = {name: (sizes.held or SetSize(0)).elements for name, sizes in published.items()}
    return HiddenSizes.of(
        {name: held.get(name, max(held.values())) for name in answers},
        frequent,
        round(_middle(answers, lambda each: each.items.element_bytes)),
        task.bound,
        task.max_item_bytes,
    )


def _thinned(answers: Mapping[str, Answer], place: int, candidates: int) -> AskedBits:
    """The union of those of so many candidates that are locally frequent somewhere."""

    def at_level(sizes: ItemsetSizes) -> SetSize:
        return sizes.levels[place] if place < len(sizes.levels) else SetSize(0)

    return AskedBits.expected(min(candidates, _united(answers, at_level)), INDEX_BYTES, INDEX_BYTES)
