"""From what parties publish of their columns to the sizes of a vertical run.

What items of different parties have to do with each other is known to nobody before the job. So the plan takes them to
be independent: an itemset of several parties has the product of the supports of its parts, as a share of the rows. How
many of a party's own itemsets are in which class of support follows from what it publishes; classes are equal ratios,
so that supports multiply where places add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.params import STANDARD_128
from crypto.protocols.alignment.costs import AlignmentSizes, ListedSizes
from crypto.protocols.products.chains import Itemset
from crypto.protocols.union.prefix_costs import AskedBits
from jobs.kinds.columns.made_up_itemsets import Split, made_up
from jobs.kinds.columns.parameters import mines, vertical_mining
from jobs.plan.answer import Answer, ColumnSizes
from jobs.plan.predicted import CLASSES
from jobs.spec.job import JobSpec
from mining.candidates import most_after
from mining.joint.vertical.grouped.items import PLACE_BYTES
from mining.joint.vertical.grouped.sizes import GroupSizes
from mining.joint.vertical.parameters import VerticalMining
from mining.joint.vertical.run_sizes import Level, Names, RunSizes, batch_sizes
from mining.limits import MAX_ITEM_BYTES
from mining.pairs import n_pairs

MOST_ITEMSETS: Final = 200_000  # of a length, that span parties and are distinguished; the time of a plan is bounded
_BLOCK_ROWS: Final = 1 << 18  # above which an itemset counts for several, since it takes so many messages
MOST_ROWS: Final = STANDARD_128.max_elements  # of a party, that can be aligned
_MOST_SPLITS: Final = 20_000  # ways in which an itemset of a length lies at the parties
_THRESHOLD: Final = 2 * CLASSES  # a support is in the middle of its class, and places count halves of classes
_MOST_PLACES: Final = 2 * _THRESHOLD
_NUMBERS: Final = range(1 << 62)
_UNSURE: Final = 4  # places between products that are hardly ever and nearly always above the threshold


@dataclass(frozen=True)
class ExpectedColumns:
    """What is expected of a vertical run.

    Attributes:
        sizes: On which its traffic depends; where nobody publishes any of items, of rows alone.
        mined: Whether anybody publishes sizes of items.
        longer: Whether anybody publishes sizes of longer itemsets and of names.
        beyond: The first length whose candidates are over the job's limit: there the job would end.
        too_many: How many candidates of the first length after `sizes.levels` span parties, where that is too much
            for a plan.
    """

    sizes: RunSizes
    mined: bool = False
    longer: bool = False
    beyond: int | None = None
    too_many: int | None = None

    @property
    def includes_mining(self) -> bool:
        """Whether the products of pairs of items are among the sizes, where there are any."""
        return self.mined and (self.too_many is None or bool(self.sizes.levels))

    @classmethod
    def of(cls, spec: JobSpec, answers: Mapping[str, Answer]) -> ExpectedColumns:
        """From all parties' answers, in the order of the job; who hides a size is taken to be like the others."""
        rows = _rows(spec, answers)
        holders = _holders(spec, tuple(answers))
        union, common = (
            spec.alignment.mode == "union",
            min(sum(rows[name] for name in each) for each in holders.values()),
        )
        if mines(spec):  # with fewer the job would end
            asked = spec.itemsets.min_support
            common = min(max(common, asked if isinstance(asked, int) else 1), MOST_ROWS)
        positions = AlignmentSizes.of(rows, common, spec.alignment.bound).positions if union else common
        nothing = dict.fromkeys(answers, Names(0, 0))
        none_named, none = dict.fromkeys(holders, Names(0, 0)), dict.fromkeys(holders, 0)
        groups = {name: _group_sizes(each, 0, 0) for name, each in holders.items() if len(each) > 1}
        sizes = RunSizes(rows, common, positions, nothing, _numbered(none, groups), none_named, groups=groups)
        sized = {name: answer.sizes for name, answer in answers.items() if answer.sizes is not None}
        if not (mines(spec) and sized):
            return cls(sizes)
        published = {name: found.columns for name, found in sized.items() if found.columns is not None}
        items_of = _like_others(answers, {name: found.items.elements for name, found in sized.items()})
        items = {holder: max(items_of[name] for name in each) for holder, each in holders.items()}
        pairs, ways = n_pairs(sum(items.values())), prod(map(len, holders.values()))
        if (
            union and _work(sum(items.values()) * ways, positions, len(answers), union=True) > MOST_ITEMSETS
        ):  # each is one that spans parties
            return cls(sizes, mined=True, longer=bool(published), too_many=pairs)
        columns = _like_others(answers, {name: found.columns for name, found in published.items()})
        names = _like_others(answers, {name: found.column_bytes for name, found in published.items()})
        item_names = _like_others(answers, {name: found.item_bytes for name, found in published.items()})
        longest = {holder: max(item_names[name] for name in each) for holder, each in holders.items()}
        known = {
            holder: next((name for name in each if name in published), each[0]) for holder, each in holders.items()
        }
        lattice = _Lattice.of(
            {holder: published[name] for holder, name in known.items() if name in published},
            {holder: sized[name].candidates for holder, name in known.items() if name in published},
            items,
        )
        levels, beyond, too_many = _levels(vertical_mining(spec), tuple(holders), lattice, positions, ways)
        groups = {
            name: _group_sizes(each, items[name], longest[name]) for name, each in holders.items() if len(each) > 1
        }
        return cls(
            RunSizes(
                rows,
                common,
                positions,
                {name: Names(columns[name], names[name]) for name in answers},
                _numbered(items, groups),
                {holder: Names(items[holder], longest[holder]) for holder in holders},
                levels,
                _first_rules(spec, (sum(items.values()), *(level.frequent for level in levels))),
                groups,
            ),
            mined=True,
            longer=bool(published),
            beyond=beyond,
            too_many=too_many,
        )


def _holders(spec: JobSpec, parties: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Who holds columns: by group its members, or every party by itself."""
    return spec.groups or {party: (party,) for party in parties}


def _group_sizes(members: tuple[str, ...], items: int, longest: int) -> GroupSizes:
    """Each member is taken to hold the frequent items of the group, and no others."""
    held = dict.fromkeys(members, items)
    names = AskedBits.expected(items, PLACE_BYTES + longest, PLACE_BYTES + MAX_ITEM_BYTES) if items else None
    return GroupSizes(ListedSizes.of(held, held), names)


def _numbered(items: Mapping[str, int], groups: Mapping[str, GroupSizes]) -> dict[str, int]:
    return {name: groups[name].lists.positions if name in groups else number for name, number in items.items()}


@dataclass(frozen=True)
class _Lattice:
    """The parties' own frequent itemsets, as published or assumed.

    Attributes:
        by_support: By party, shape (lengths, places): how many itemsets of 1, 2, … items have a support at each place.
        candidates: By party, of 1, 2, … items: how many of its own it decides on.
    """

    by_support: tuple[NDArray[np.float64], ...]
    candidates: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, published: Mapping[str, ColumnSizes], counted: Mapping[str, tuple[int, ...]], items: Mapping[str, int]
    ) -> _Lattice:
        """From what is known of some parties' columns, of their own candidates, and of the frequent items of each."""
        lengths = max((len(columns.by_support) for columns in published.values()), default=0)
        shape = (max(lengths, 1), _MOST_PLACES + 1)
        found = {}
        for name, columns in published.items():
            places = found[name] = np.zeros(shape)
            for row, classes in zip(places, columns.by_support, strict=False):
                row[1:_THRESHOLD:2] = classes
        middle = np.mean([*found.values()], axis=0) if found else np.zeros(shape)
        by_support = []
        for name, number in items.items():
            places = found.get(name, middle).copy()
            if not places[0].any():
                places[0, _THRESHOLD - 1] = number  # just above the threshold, where no more is published
            by_support.append(places)
        candidates = []
        for name, number in items.items():
            own = counted.get(name, ())
            candidates.append(own if len(own) > 1 else (number, n_pairs(number)))
        return cls(tuple(by_support), tuple(candidates))

    def frequent(self, party: int, length: int) -> int:
        """How many of a party's own itemsets of this length are frequent."""
        places = self.by_support[party]
        return round(places[length - 1].sum()) if length <= len(places) else 0

    def longest(self, party: int) -> int:
        """The greatest length of a party's own frequent itemsets."""
        return int(np.flatnonzero(self.by_support[party].any(axis=1)).max(initial=-1)) + 1

    def splits(self, length: int) -> Iterator[Split]:
        """The ways in which itemsets of this length lie at the parties."""
        longest = [self.longest(party) for party in range(len(self.by_support))]
        after = [sum(longest[place:]) for place in range(len(longest) + 1)]

        def beyond(place: int, left: int) -> Iterator[Split]:
            if place == len(longest):
                yield ()
                return
            for own in range(max(0, left - after[place + 1]), min(left, longest[place]) + 1):
                for rest in beyond(place + 1, left - own):
                    yield own, *rest

        yield from beyond(0, length)

    def expected(self, split: Split) -> tuple[float, float]:
        """Candidates and frequent itemsets of a split."""
        length, involved = sum(split), [party for party, own in enumerate(split) if own]
        if len(involved) == 1:
            (party,) = involved
            own = self.candidates[party]
            return float(own[length - 1]) if length <= len(own) else 0.0, float(self.frequent(party, length))
        places = np.zeros(_MOST_PLACES + 1)
        places[0] = 1.0
        for party in involved:
            places = np.convolve(places, self.by_support[party][split[party] - 1])[: _MOST_PLACES + 1]
        frequent = float(places @ _above(_THRESHOLD))
        if length == 2:
            return float(prod(self.frequent(party, 1) for party in involved)), frequent
        # Without its commonest item, whose share of the places is not above the mean, it is frequent.
        return float(places @ _above(_THRESHOLD * length / (length - 1))), frequent


def _above(threshold: float) -> NDArray[np.float64]:
    """By place, the share of products whose support reaches the threshold: factors are anywhere in their classes."""
    return np.clip(0.5 + (threshold - np.arange(_MOST_PLACES + 1)) / _UNSURE, 0.0, 1.0)


def _levels(
    task: VerticalMining, holders: Sequence[str], lattice: _Lattice, positions: int, ways: int
) -> tuple[tuple[Level, ...], int | None, int | None]:
    """The levels, the first length that is over the job's limit, and how many candidates are too many for a plan.

    Args:
        task: The public parameters.
        holders: Of columns: groups or parties.
        lattice: Of their own frequent itemsets.
        positions: Of rows.
        ways: To take a member of every group, each of which is a product.
    """
    levels = list[Level]()
    frequent = 1
    while frequent and task.allows(len(levels) + 2):
        length = len(levels) + 2
        numbers = dict[Split, tuple[float, float]]()
        for split in islice(lattice.splits(length), _MOST_SPLITS):
            numbers[split] = lattice.expected(split)
        candidates = {split: round(number) for split, (number, _) in numbers.items() if round(number)}
        total = sum(candidates.values())
        frequent = round(sum(number for split, (_, number) in numbers.items() if split in candidates))
        if not total:
            break
        union = task.mode == "union"
        spanning = sum(number for split, number in candidates.items() if union or sum(map(bool, split)) > 1)
        if _work(spanning * ways, positions, len(holders), union=union) > MOST_ITEMSETS or len(numbers) == _MOST_SPLITS:
            return tuple(levels), None, spanning
        before = ((place, level.frequent) for place, level in enumerate(levels, 2))
        if total > most_after(before, length, task.max_candidates):
            return tuple(levels), length, None
        itemsets = made_up(holders, candidates, lattice.frequent, union=union)
        batches = _cut(itemsets, total, positions)
        names = dict.fromkeys(holders, _NUMBERS)  # made-up conjunctions are numbered alike at all lengths
        levels.append(Level(total, min(frequent, total), batches, (names,) * len(batches)))
    return tuple(levels), None, None


def _work(itemsets: int, positions: int, parties: int, *, union: bool) -> int:
    """What the time of a plan grows with: itemsets, and for each the blocks of rows that pairs of parties multiply."""
    return itemsets * (1 + positions // _BLOCK_ROWS * (n_pairs(parties) if union else 1))


def _cut(itemsets: Sequence[Itemset], candidates: int, positions: int) -> tuple[Sequence[Itemset], ...]:
    """The itemsets that span parties in as many batches as all candidates are computed in."""
    ends = np.cumsum(batch_sizes(candidates, positions)) * len(itemsets) // candidates
    return tuple(itemsets[start:end] for start, end in pairwise([0, *ends.tolist()]))


def _first_rules(spec: JobSpec, frequent: Sequence[int]) -> tuple[int, ...]:
    """The rules with one item on the right, which are examined first where rules are decided on shares."""
    if vertical_mining(spec).rules is None:
        return ()
    number = sum(length * itemsets for length, itemsets in enumerate(frequent, 1) if length > 1)
    return (number,) if number else ()


def _rows(spec: JobSpec, answers: Mapping[str, Answer]) -> dict[str, int]:
    guess = spec.plan.rows or spec.alignment.bound or 0
    published = {name: min(answer.n_rows, MOST_ROWS) for name, answer in answers.items() if answer.n_rows is not None}
    return _like_others(answers, published) if published else dict.fromkeys(answers, min(guess, MOST_ROWS))


def _like_others(answers: Mapping[str, Answer], published: Mapping[str, int]) -> dict[str, int]:
    """What each party publishes; who publishes nothing has as much as the others on average."""
    mean = round(sum(published.values()) / len(published)) if published else 0
    return {name: published.get(name, mean) for name in answers}
