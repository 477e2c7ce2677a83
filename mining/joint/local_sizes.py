"""What one party's own rows let it expect of a joint run: numbers only, and only as many as a plan needs.

Three questions are answered by mining the own rows alone:

How many candidates will all parties count together, how many of them will be frequent, and how many rules will be
examined? As many as the own rows give at the job's relative threshold, less what is due to chance: among fewer rows
more itemsets pass a threshold by luck. The rows are therefore also dealt among as many parts as the job has parties,
and mined part by part; the excess, taken to shrink with the number of rows, is extrapolated to the rows of all parties.

What will this party put into a union? What reaches its local threshold, exactly as in the run.

What will a union hold? The same parts tell which share of a part's elements no other part has, its novelty. It shrinks
with the square root of the number of rows, as the spread of the counts does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np

from crypto.protocols.union_lists import length_class
from link.errors import ConfigurationError
from mining.candidates import join
from mining.filters import maximal_sets
from mining.itemsets import Itemsets
from mining.joint.disclosure import may_be_one_shot
from mining.joint.one_shot import index_width
from mining.joint.parameters import MAX_ONE_SHOT_LENGTH, HorizontalMining, RuleParameters
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.miner import frequent_itemsets
from mining.pairs import n_pairs
from mining.rule_growth import Family, RuleGrowth
from mining.thresholds import local_threshold, minimum_count
from mining.transactions import Transactions

MOST_ITEMSETS: Final = 1 << 18  # that are mined for a plan at a time: about a second
BUDGET_S: Final = 10.0  # beyond which the rows are no longer dealt and mined again
_ALMOST: Final = 1e-9  # by which a product of floats may be off
_SHORTER: Final = (4, 3, 2)  # lengths to fall back to where there are more itemsets


@dataclass(frozen=True)
class SetEstimate:
    """A set that this party would bring into a union.

    Attributes:
        elements: Its size.
        blocks: Blocks of its longest element.
        novelty: The share of a further party's elements that no other has, if that party is like this one.
    """

    elements: int
    blocks: int
    novelty: float


@dataclass(frozen=True)
class LocalSizes:
    """What this party expects.

    Attributes:
        candidates: Of 1, 2, 3, … items: what all parties would count if all were like this one. Those of one item are
            the frequent items.
        frequent: Of 1, 2, 3, … items: how many itemsets would be frequent.
        complete: Whether longer candidates than these would not be expected.
        items: Those that are locally frequent.
        held: All items that occur, where a universe of all items or a hidden one was asked for.
        rules: How many rules would be examined, batch by batch, where that was asked for.
        mined: Whether locally frequent itemsets were looked for, of which the rest tells.
        itemsets: For the union of the one-shot strategy; None where it is unbounded.
        closure: The itemsets of two and more items for which these stand.
        levels: Of 2, 3, … items: for the unions that thin the candidates.
    """

    candidates: tuple[int, ...]
    frequent: tuple[int, ...]
    complete: bool
    items: SetEstimate
    held: SetEstimate | None = None
    rules: tuple[int, ...] = ()
    mined: bool = False
    itemsets: SetEstimate | None = None
    closure: SetEstimate | None = None
    levels: tuple[SetEstimate, ...] = ()


@dataclass(frozen=True)
class _Expected:
    """Candidates and frequent itemsets of 1, 2, … items, whether that is all of them, and batches of rules."""

    candidates: tuple[int, ...]
    frequent: tuple[int, ...]
    complete: bool
    rules: tuple[int, ...] = ()


def local_sizes(
    data: Transactions,
    task: HorizontalMining,
    n_parties: int,
    n_rows: int,
    variants: Sequence[HorizontalMining] = (),
) -> LocalSizes:
    """Mines the own rows for a plan.

    Args:
        data: This party's rows.
        task: The public parameters.
        n_parties: Parties of the job.
        n_rows: Rows of all parties, as far as known; not fewer than the own are reckoned with.
        variants: Other ways to do the same job, whose sizes are told too: they differ from the task in what they
            disclose, in strategy, universe and thinning alone.

    Raises:
        ConfigurationError: min_support is a count above the number of transactions.
    """
    began = time.monotonic()
    tasks = (task, *variants)
    n_rows = max(n_rows, data.n_rows, 1)
    least = minimum_count(task.min_support, n_rows)
    share = Fraction(task.min_support) if isinstance(task.min_support, Decimal) else Fraction(least, n_rows)
    threshold = local_threshold(task.min_support, data.n_rows, least, n_parties, task.lambda_, n_rows)
    parts = [_part(data, place, n_parties) for place in range(n_parties)]
    part_threshold = max(1, ceil(Fraction(threshold * parts[0].n_rows, max(data.n_rows, 1))))

    rules = next((each.rules for each in tasks if each.rules is not None), None)
    expected = _expected(data, share, task, rules)
    if time.monotonic() - began < BUDGET_S / 4:
        expected = _without_chance(expected, data.n_rows, n_rows, parts, share, task, rules)
    items = _items(data, threshold, parts, part_threshold)
    held = (
        _items(data, 1, parts, 1) if any(each.hides_names or each.universe == "all-items" for each in tasks) else None
    )
    mined = any(each.thin or _one_shot_is_likely(each, expected.candidates[0]) for each in tasks)
    known = LocalSizes(
        expected.candidates, expected.frequent, expected.complete, items, held, expected.rules, mined=mined
    )
    own = _locally_frequent(data, threshold, task) if mined else None
    if own is None:
        return known
    dealt = []
    if part_threshold > 1 and time.monotonic() - began < BUDGET_S / 2:
        dealt = [found for part in parts if (found := _locally_frequent(part, part_threshold, task)) is not None]
    levels = tuple(
        SetEstimate(len(sets), 1, _novelty([_names(found, slice(place + 1, place + 2)) for found in dealt]))
        for place, (sets, _) in enumerate(own.levels[1:])
    )
    carried = [found if task.union == "all" else _maximal(found) for found in (own, *dealt)]
    longest = max((sets.shape[1] for sets in _sets(carried[0])), default=0)
    itemsets = SetEstimate(
        sum(map(len, _sets(carried[0]))),
        length_class([bytes(longest * index_width(max(expected.candidates[0], len(own.items))))]),
        _novelty([_names(found, slice(1, None)) for found in carried[1:]]),
    )
    closure = SetEstimate(sum(map(len, _sets(own))), 1, _novelty([_names(found, slice(1, None)) for found in dealt]))
    return replace(known, itemsets=itemsets, closure=closure, levels=levels)


def united(sizes: Sequence[int], novelty: float) -> int:
    """The expected size of the union of sets of these sizes."""
    most = max(sizes, default=0)
    return most + round(novelty * (sum(sizes) - most))


def _one_shot_is_likely(task: HorizontalMining, n_items: int) -> bool:
    """Whether the parties may come to choose the one-shot strategy, with some more or fewer frequent items."""
    asked = task.strategy == "one-shot" or task.prefer == "speed"
    return may_be_one_shot(task) and (asked or n_pairs(2 * n_items) > task.max_candidates)


def _part(data: Transactions, place: int, parts: int) -> Transactions:
    """Every so-manieth row."""
    chosen = data.row_numbers() % parts == place
    lengths = data.lengths[place::parts]
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Transactions(data.items, offsets, data.indices[chosen])


def _expected(data: Transactions, share: Fraction, task: HorizontalMining, rules: RuleParameters | None) -> _Expected:
    """What these rows give at the relative threshold."""
    least = max(1, ceil(share * data.n_rows))
    for longest in (task.max_length, *_SHORTER):
        if longest is not None and task.max_length is not None and longest > task.max_length:
            continue
        try:
            found = frequent_itemsets(data, least, max_length=longest, limit=MOST_ITEMSETS)
        except EnumerationLimit:
            continue
        frequent = (len(found.items), *(len(sets) for sets, _ in found.levels[1:]))
        batches = () if rules is None else _rule_batches(found.canonical(), rules)
        return _Expected(_joined(found, task, longest), frequent, longest == task.max_length, batches)
    items = int(np.count_nonzero(data.item_counts() >= least))
    if not task.allows(2):
        return _Expected((items,), (items,), complete=True)
    return _Expected((items, n_pairs(items)), (items, min(n_pairs(items), MOST_ITEMSETS)), complete=False)


def _joined(found: Itemsets, task: HorizontalMining, longest: int | None) -> tuple[int, ...]:
    counted = [len(found.items)]
    if task.allows(2) and n_pairs(len(found.items)):
        counted.append(n_pairs(len(found.items)))
    for sets, _ in found.levels[1:]:
        length = sets.shape[1] + 1
        if not task.allows(length) or (longest is not None and length > longest + 1):
            break
        try:
            candidates = len(join(sets, task.max_candidates))
        except EnumerationLimit:
            return (*counted, task.max_candidates + 1)
        if not candidates:
            break
        counted.append(candidates)
    return tuple(counted)


def _rule_batches(itemsets: Itemsets, rules: RuleParameters) -> tuple[int, ...]:
    """How many rules are examined at a time where these supports decide; up to a limit."""
    family = Family(itemsets)
    growth = RuleGrowth(family, single=rules.consequent == "single", max_rules=MOST_ITEMSETS)
    least = np.ceil(float(rules.min_confidence) * family.counts - _ALMOST)
    batches = []
    with suppress(ConfigurationError):
        while (batch := growth.next_batch()) is not None:
            batches.append(len(batch))
            growth.keep(family.counts[batch.whole] >= least[batch.antecedent])
    return tuple(batches)


def _without_chance(
    whole: _Expected,
    own_rows: int,
    n_rows: int,
    parts: Sequence[Transactions],
    share: Fraction,
    task: HorizontalMining,
    rules: RuleParameters | None,
) -> _Expected:
    """The numbers less the excess of small samples, taken to be inversely proportional to the rows.

    With an excess of b among r rows it is p·b among r / p; so what the parts have more than the whole is (p − 1)·b.
    """
    if len(parts) < 2 or share * parts[-1].n_rows <= 1:
        return whole
    dealt = [_expected(part, share, task, rules) for part in parts]
    left = 1 - own_rows / n_rows

    def extrapolated(numbers: tuple[int, ...], of_parts: list[tuple[int, ...]]) -> list[int]:
        found = []
        for place, number in enumerate(numbers):
            each = sum(part[place] if place < len(part) else 0 for part in of_parts) / len(parts)
            found.append(max(0, round(number - left * (each - number) / (len(parts) - 1))))
        return found

    candidates = extrapolated(whole.candidates, [part.candidates for part in dealt])
    if len(candidates) > 1:  # which follow exactly
        candidates[1] = n_pairs(candidates[0])
    frequent = extrapolated(whole.frequent, [part.frequent for part in dealt])
    batches = extrapolated(whole.rules, [part.rules for part in dealt])
    return _Expected(tuple(candidates), tuple(map(min, frequent, candidates)), whole.complete, tuple(batches))


def _items(data: Transactions, least: int, parts: Sequence[Transactions], part_least: int) -> SetEstimate:
    """The items of so high a count."""
    found = np.flatnonzero(data.item_counts() >= least)
    dealt = [frozenset(np.flatnonzero(part.item_counts() >= part_least).tolist()) for part in parts]
    return SetEstimate(len(found), length_class([data.items[item].encode() for item in found]), _novelty(dealt))


def _locally_frequent(data: Transactions, threshold: int, task: HorizontalMining) -> Itemsets | None:
    """As the one-shot strategy mines; None where that is unbounded, or too much for a plan."""
    limit = min(task.max_candidates, MOST_ITEMSETS)
    longest = task.max_length or MAX_ONE_SHOT_LENGTH + 1
    try:
        found = frequent_itemsets(data, threshold, max_length=longest, limit=limit)
    except EnumerationLimit:
        return None
    return found if len(found.levels) <= MAX_ONE_SHOT_LENGTH else None


def _maximal(found: Itemsets) -> Itemsets:
    kept = maximal_sets([sets for sets, _ in found.levels])
    return Itemsets(found.items, [(sets, np.zeros(len(sets), np.int64)) for sets in kept], found.n_rows)


def _sets(found: Itemsets) -> list[Sets]:
    """Those of two and more items."""
    return [sets for sets, _ in found.levels if sets.shape[1] > 1]


def _names(found: Itemsets, lengths: slice) -> frozenset[tuple[str, ...]]:
    """The itemsets of these places among the levels, as names: the parts have dictionaries of their own."""
    names = np.array(found.items, dtype=object)
    return frozenset(tuple(row) for sets, _ in found.levels[lengths] for row in names[sets].tolist())


def _novelty(dealt: Sequence[frozenset[object]]) -> float:
    """The novelty among parties, from that among the parts of one."""
    most = max(map(len, dealt), default=0)
    rest = sum(map(len, dealt)) - most
    if not rest:
        return 0.0
    among_parts = (len(frozenset().union(*dealt)) - most) / rest
    return float(1 - (1 - among_parts) ** (len(dealt) ** -0.5))
