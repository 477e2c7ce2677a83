"""From what the parties publish to the sizes of the joint run: what is expected, and what the job's limits allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from crypto.primitives.blocks import blocks_needed
from crypto.protocols.union_costs import UnionSizes
from crypto.protocols.union_lists import MAX_BLOCKS, ListSizes, common_fakes, room_for_common_fakes
from link.errors import InputDataError
from mining.joint.disclosure import may_be_one_shot
from mining.joint.level_wise import INDEX_BYTES
from mining.joint.local_sizes import united
from mining.joint.parameters import MAX_ITEM_BYTES, MAX_ONE_SHOT_LENGTH, HorizontalMining
from mining.joint.sizes import MiningSizes
from mining.joint.strategy import choose
from mining.pairs import n_pairs
from mining.thresholds import minimum_count
from protos.v1.plan_pb2 import LocalSizes, PartyEstimate, SetSize

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


def total_rows(answers: Mapping[str, PartyEstimate]) -> int | None:
    """The rows of all parties; who hides them counts as the mean of the others. None where all hide them."""
    told = [answer.n_rows for answer in answers.values() if answer.HasField("n_rows")]
    return round(sum(told) * len(answers) / len(told)) if told else None


def expected(task: HorizontalMining, answers: Mapping[str, PartyEstimate]) -> Expected | None:
    """What all parties' answers let expect; None where none publishes its sizes.

    A party that hides its sizes is taken to be like the others together.

    Raises:
        InputDataError: There are no transactions.
    """
    sized = {name: answer for name, answer in answers.items() if answer.HasField("sizes")}
    n_rows = total_rows(answers)
    if n_rows == 0 and len(sized) == len(answers):
        raise InputDataError("no party has any transaction in this dataset, so there is nothing to mine")
    if not sized or not n_rows:
        return None
    sizes = [answer.sizes for answer in sized.values()]
    candidates = [
        round(_middle(sized, lambda each, k=k: each.candidates[k] if k < len(each.candidates) else 0))  # type: ignore[misc]
        for k in range(max(len(each.candidates) for each in sizes))
    ]
    n_items = candidates[0] if candidates else 0
    strategy = choose(task, n_items, len(answers), minimum_count(task.min_support, max(n_rows, _count(task))))
    items = None if task.catalogue is not None else _union(task, answers, lambda each: each.items)
    universe = len(task.catalogue) if task.catalogue is not None else items.elements if items is not None else 0
    tried = strategy == "one-shot" and task.allows(2)
    if tried and all(each.HasField("itemsets") for each in sizes):
        union = _union(task, answers, lambda each: each.itemsets)
        closure = _union(task, answers, lambda each: each.closure).elements
        return Expected(MiningSizes(n_rows, universe, items, union, closure, tried=True), n_rows, strategy)
    counted, beyond = [], None
    for length, number in enumerate(candidates[1:], 2):
        if number > task.max_candidates:
            beyond = length
        if beyond is not None or not number:
            break
        counted.append(number)
    thinned = [_thinned(task, answers, place, number) for place, number in enumerate(counted) if task.thin]
    found = MiningSizes(n_rows, universe, items, candidates=tuple(counted), thinned=tuple(thinned), tried=tried)
    return Expected(found, n_rows, "level-wise", beyond)


def allowed(task: HorizontalMining, parties: Sequence[str]) -> list[MiningSizes]:
    """The largest sizes that the job's own limits allow, by strategy, whatever the parties hold."""
    levels = min(task.max_length or MAX_ONE_SHOT_LENGTH, MAX_ONE_SHOT_LENGTH)
    items = _largest(task, parties, MAX_ITEM_BYTES) if task.catalogue is None else None
    universe = len(parties) * (task.bound or MAX_BLOCKS) if task.catalogue is None else len(task.catalogue)
    candidates = (min(n_pairs(universe), task.max_candidates), *(task.max_candidates for _ in range(3, levels + 1)))
    candidates = candidates[: max(levels - 1, 0)]
    thinned = tuple(_largest(task, parties, INDEX_BYTES) for _ in candidates) if task.thin else ()
    found = [MiningSizes(_MANY_ROWS, universe, items, candidates=candidates, thinned=thinned)]
    if may_be_one_shot(task):
        union = _largest(task, parties, INDEX_BYTES * levels)
        found.append(MiningSizes(_MANY_ROWS, universe, items, union, task.max_candidates, tried=True))
    return found


def _count(task: HorizontalMining) -> int:
    """The rows that there must be at least: rounded numbers may be fewer."""
    return task.min_support if isinstance(task.min_support, int) else 1


def _middle(sized: Mapping[str, PartyEstimate], of: Callable[[LocalSizes], float]) -> float:
    """The median over the parties, weighted by their rows: a few rows may tell anything, and they tell it loudly."""
    told = sorted((of(answer.sizes), max(answer.n_rows, 1)) for answer in sized.values())
    half = sum(weight for _, weight in told) / 2
    reached = list(accumulate(weight for _, weight in told))
    place = next(index for index, weight in enumerate(reached) if weight >= half)
    value = told[place][0]
    return (value + told[place + 1][0]) / 2 if reached[place] == half else value


def _union(
    task: HorizontalMining, answers: Mapping[str, PartyEstimate], choose_set: Callable[[LocalSizes], SetSize]
) -> UnionSizes:
    """The union of one set of each party; who hides its own is taken to hold as much as the others on average."""
    sized = {name: answer for name, answer in answers.items() if answer.HasField("sizes")}
    told = {name: choose_set(answer.sizes) for name, answer in sized.items()}
    average = round(sum(each.elements for each in told.values()) / len(told))
    held = {name: told[name].elements if name in told else average for name in answers}
    return UnionSizes.expected(
        held,
        united(list(held.values()), _middle(sized, lambda each: choose_set(each).novelty)),
        max(1, *(each.blocks for each in told.values())),
        task.bound,
        {name: each.rung for name, each in told.items()},
    )


def _thinned(task: HorizontalMining, answers: Mapping[str, PartyEstimate], place: int, candidates: int) -> UnionSizes:
    """The union of those of so many candidates that are locally frequent somewhere."""

    def at_level(sizes: LocalSizes) -> SetSize:
        found = sizes.levels[place] if place < len(sizes.levels) else SetSize(blocks=1)
        return found if found.elements <= candidates else SetSize(elements=candidates, rung=found.rung, blocks=1)

    union = _union(task, answers, at_level)
    return replace(union, elements=min(union.elements, candidates))


def _largest(task: HorizontalMining, parties: Sequence[str], element_bytes: int) -> UnionSizes:
    """The union of the longest lists that there can be, whose elements have up to so many bytes."""
    blocks_each = blocks_needed(element_bytes)
    room = room_for_common_fakes(len(parties), common_fakes(1.0))
    if task.bound is None:
        most = max(1, MAX_BLOCKS // blocks_each - room)
    else:
        most, blocks_each = task.bound, max(1, min(blocks_each, MAX_BLOCKS // (task.bound + room)))
    lists = ListSizes(blocks_each, dict.fromkeys(parties, most), room)
    return UnionSizes(lists, task.bound is None, lists.total, sum(lists.capacity.values()))
