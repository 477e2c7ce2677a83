"""Frequent itemsets from noisy supports: central differential privacy, and no place that sees an exact support.

    0  the noisy number of rows is opened; the least support c follows                                   noisy_rows
    1  the items are those of a public catalogue, or those that parties name by noisy counts of their own     items
    then for itemsets of 1, 2, … items
    2  candidates are all itemsets whose noisy supports one level down nearly reach c; all parties find the same
    3  noisy numbers of rows by how many of them they hold are opened, from which M follows              noisy_sizes
    4  each party truncates: a record counts to at most M of them, by what is public and that record alone
    5  each party adds its share of the noise, and the sums are opened                               noisy_supports
    and in the end
    6  itemsets whose noisy supports reach c, or the k largest, are the result, with what noise and step 4 may move

Rounds:     1 for keys, 1 for rows, 1 for names, and 2 or 3 for each length.
Output:     the itemsets with noisy supports, and association rules with intervals.
Adversary:  semi-honest parties.
Collusion:  all that is opened, together, has the job's (ε, δ) for each record of the others, against t parties who know
            their own noise and anybody else who sees it. Every party does see it and knows its own noise, so t = 0
            speaks of outsiders alone. More than t parties, up to n − 2, see sums over the others with less noise.
Leakage:    what is opened, as `disclosure` lists it; all of it is noisy. Nothing exact leaves a party: no union of
            items, no exact threshold, no count. Neighbouring data differ in one record more or less.
Drop-outs:  a party that is lost ends the job; see `noisy_sum`. In another attempt the parties go on after the last step
            that all have kept, and each has the same noise in a step as before (`coins`): whoever sees several attempts
            sees the same opened again, so all of them together cost (ε, δ) once. Masks are fresh, and what they hide
            is the same: n − 1 colluders learn nothing from two attempts that they did not know from one.
Source:     the itemsets after Agrawal and Srikant, VLDB 1994; noise and accounting as in `budget`; truncation after
            Zeng, Naughton and Cai, "On Differentially Private Frequent Itemset Mining", PVLDB 6(1), 2012.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import encode_labels
from crypto.primitives.randomness import Randomness
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from ldp.accounting.central_noise import confident_threshold
from link.errors import ConfigurationError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.candidates import Candidates, join
from mining.counting import LevelCounter
from mining.data.rows import Rows
from mining.joint.coins import coins
from mining.joint.distributed.budget import (
    SumNoise,
    drawn_contributions,
    given_contributions,
    length_noise,
    rows_noise,
    selection,
    sizes_noise,
    spent,
)
from mining.joint.distributed.candidates import NoisyLevel, expected_supports, kth_largest
from mining.joint.distributed.classes import ItemClasses, ItemsetClasses
from mining.joint.distributed.findings import findings, noisy_rules
from mining.joint.distributed.noisy_sum import noisy_sum
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.distributed.row_sizes import (
    LIKELY,
    USUAL_SHARE,
    Truncation,
    item_truncation,
    itemset_truncation,
    size_classes,
    usual_contributions,
)
from mining.joint.distributed.selection import named_items
from mining.joint.distributed.truncation import Excess, truncated_item_counts
from mining.joint.estimated import Estimated, EstimatedOutcome
from mining.joint.tally import Counts, Mask
from mining.lattice import Sets
from mining.limits import EnumerationLimit
from mining.local_counts import counter_of
from mining.pairs import n_pairs
from mining.thresholds import check_floor, minimum_count

SLACK: Final = 0.5
"""How many standard deviations below the least support an itemset may be and still be joined to candidates."""


_BETA: Final = 0.05  # with k alone: the probability that some candidate that no record holds goes on


@dataclass(slots=True)
class _Opened:
    """What the job has opened so far; with the specification it settles what is counted next.

    Attributes:
        digest: Of all of it: the noise of the next step is for this alone.
    """

    digest: bytes = bytes(32)

    async def coins(self, lane: Session) -> Randomness:
        """Those of the step that is taken on a lane."""
        return await coins(lane, "noise", self.digest)

    def add(self, opened: bytes) -> None:
        """Adds what a step has opened."""
        self.digest = hashlib.sha256(self.digest + opened).digest()

    async def sums(
        self, lane: Session, secrets: PairwiseSecrets, counts: Callable[[], Counts], noise: SumNoise, label: str
    ) -> Counts:
        """The noisy sums of one step; counts are taken only where no earlier attempt has opened these."""

        async def take() -> Known:
            own, random = await lane.compute(counts), await self.coins(lane)
            return Known(await noisy_sum(lane, secrets, own.ravel(), noise, label, random))

        found: Counts = (await step(lane, label, take)).public
        self.add(found.tobytes())
        return found


@dataclass(frozen=True, slots=True)
class _Search:
    """What one party knows once the number of rows is open.

    Attributes:
        session: The lane of the search.
        opened: What has been opened so far, by all attempts.
        secrets: Of this session.
        task: The public parameters.
        n_rows: The noisy number of all rows, at least 1.
        min_count: c; None where only the k largest are asked for.
    """

    session: Session
    opened: _Opened
    secrets: PairwiseSecrets
    task: DistributedMining
    n_rows: int
    min_count: int | None

    def bar(self, levels: Sequence[NoisyLevel]) -> float | None:
        """What a noisy support must reach, by all that has been opened; None where that is not known yet."""
        known = [] if self.min_count is None else [float(self.min_count)]
        if self.task.top_k is not None and (largest := kth_largest(levels, self.task.top_k)) is not None:
            known.append(largest)
        return max(known, default=None)

    def least(self, levels: Sequence[NoisyLevel]) -> float:
        """The same, or a hundredth of all rows while it is not known."""
        bar = self.bar(levels)
        return max(1.0, self.n_rows * USUAL_SHARE if bar is None else bar)

    def deviation(self, length: int, most: int) -> float:
        """That of the noise in counts of one length."""
        return length_noise(self.task, len(self.session.parties), length, most).sigma

    def drawn(self, length: int) -> float:
        """The largest M of one length for which noise can be drawn."""
        return drawn_contributions(self.task, len(self.session.parties), length)

    async def sizes(self, length: int, held: Callable[[], Counts]) -> tuple[Counts, float]:
        """Step 3: noisy numbers of rows by each way to class them, and the deviation of the noise."""
        noise = sizes_noise(self.task, len(self.session.parties), length)
        lane = self.session.lane(f"sizes-{length}")
        return await self.opened.sums(lane, self.secrets, held, noise, "noisy_sizes"), noise.sigma

    async def open(
        self,
        levels: Sequence[NoisyLevel],
        sets: Sets,
        counts: Callable[[], Counts],
        most: int,
        lost: NDArray[np.float64],
    ) -> tuple[NoisyLevel, Mask]:
        """Step 5: the noisy supports of all candidates, and which of them go on."""
        length = sets.shape[1]
        noise = length_noise(self.task, len(self.session.parties), length, most)
        lane = self.session.lane(f"level-{length}")
        noisy = await self.opened.sums(lane, self.secrets, counts, noise, "noisy_supports")
        opened = NoisyLevel(sets, noisy, noise.sigma, lost)
        bar = self.bar([*levels, opened])
        if bar is None:  # fewer than k so far: what cannot be distinguished from nothing stays behind
            bar = confident_threshold(0.0, noise.sigma, len(sets), _BETA)
        return opened, opened.counts >= bar - SLACK * noise.sigma


async def mine(session: Session, data: Rows, task: DistributedMining, least_count: int = 1) -> EstimatedOutcome:
    """Runs this party's part.

    Args:
        session: A lane of the job's session.
        data: This party's rows; perhaps none. Items that a public catalogue does not name are left out, without
            a word, since that would reveal single records.
        task: The public parameters, equal at all parties.
        least_count: This party's own floor for a least support that the job names.

    Raises:
        ConfigurationError: The budget does not fit the noise, or there are too many candidates or rules.
        PolicyDenied: The least support is below this party's floor.
        ProtocolViolation: A peer broke the rules.
    """
    search = await _begin(session, data.n_rows, task, least_count)
    universe = await _universe(search, data)
    items, levels = await _levels(search, await session.compute(data.onto, universe))
    cost = await session.compute(spent, task, len(session.parties))
    if session.me not in task.learners:
        return EstimatedOutcome(search.n_rows, cost, None)
    found = await session.compute(findings, items, levels, search.bar(levels), task.top_k, search.n_rows)
    rules = None if task.rules is None else await session.compute(noisy_rules, found, task.rules)
    return EstimatedOutcome(search.n_rows, cost, Estimated(found, cost, rules))


async def _begin(session: Session, rows: int, task: DistributedMining, least_count: int) -> _Search:
    """Step 0."""
    opened, secrets = _Opened(), await agree(session.lane("keys"))
    noise, lane = rows_noise(task, len(session.parties)), session.lane("rows")
    (total,) = await opened.sums(lane, secrets, lambda: np.array([rows], np.int64), noise, "noisy_rows")
    n_rows, asked = max(1, int(total)), task.min_support
    min_count = asked if asked is None or isinstance(asked, int) else minimum_count(asked, n_rows)
    if min_count is not None:
        check_floor(min_count, least_count, session.me)
    return _Search(session, opened, secrets, task, n_rows, min_count)


async def _universe(search: _Search, data: Rows) -> tuple[str, ...]:
    """Step 1."""
    task, session = search.task, search.session
    if task.catalogue is not None:
        return task.catalogue
    chosen = selection(task, len(session.parties))
    assert chosen is not None  # without a catalogue, parties choose
    lane = session.lane("items")

    async def take() -> Known:
        random = await search.opened.coins(lane)
        return Known(await named_items(lane, data, chosen, task.max_candidates, random))

    names: tuple[str, ...] = (await step(lane, "named", take)).public
    search.opened.add(encode_labels(*names))
    return names


async def _levels(search: _Search, data: Rows) -> tuple[tuple[str, ...], list[NoisyLevel]]:
    """Steps 2 to 5: the items that go on, and by length the itemsets of these."""
    session, task = search.session, search.task
    if not data.n_items:
        return (), []
    session.progress("itemsets of 1", 0, 1)
    truncation = await _of_items(search, data)
    counts = partial(truncated_item_counts, data, truncation.most)
    lost = np.full(data.n_items, truncation.of_any)
    opened, kept = await search.open([], _singles(data.n_items), counts, truncation.most, lost)
    session.progress("itemsets of 1", 1, 1)
    items = tuple(data.items[at] for at in np.flatnonzero(kept))
    levels = [NoisyLevel(_singles(len(items)), opened.counts[kept], opened.sigma, opened.lost[kept])]
    data = await session.compute(data.onto, items)
    counter = counter_of(data)
    while len(levels) < task.max_length:
        length = len(levels) + 1
        candidates = await session.compute(_joined, levels[-1].sets, task.max_candidates)
        if not len(candidates):
            break
        session.progress(f"itemsets of {length}", 0, 1)
        expected = expected_supports(candidates, levels, search.n_rows)
        order = np.argsort(-expected, kind="stable")
        likely = int(np.count_nonzero(expected >= LIKELY * search.least(levels)))
        truncation = await _of_itemsets(search, data, levels, candidates, order, likely)
        counts = partial(_truncated_counts, counter, data, candidates, order, truncation.most)
        lost = _bounds(truncation, order, likely)
        opened, kept = await search.open(levels, candidates.sets, counts, truncation.most, lost)
        session.progress(f"itemsets of {length}", 1, 1)
        if not kept.any():
            break
        sets, left = candidates.sets[kept], candidates.left[kept]
        counter.advance(sets, left)
        levels.append(NoisyLevel(sets, opened.counts[kept], opened.sigma, opened.lost[kept]))
    return items, levels


async def _of_items(search: _Search, data: Rows) -> Truncation:
    """M of items."""
    of_one, least, drawn = search.deviation(1, 1), search.least([]), search.drawn(1)
    usual = usual_contributions(1, of_one, least, drawn)
    ends = size_classes(of_one, least, data.n_items, given_contributions(search.task, 1), usual, drawn)
    if not ends:
        return Truncation(data.n_items)
    held, sigma = await search.sizes(1, lambda: data.total(ItemClasses(ends)))
    return item_truncation(ends, held, sigma, of_one, least, data.n_items, usual)


async def _of_itemsets(
    search: _Search,
    data: Rows,
    levels: Sequence[NoisyLevel],
    candidates: Candidates,
    order: NDArray[np.int64],
    likely: int,
) -> Truncation:
    """M of longer candidates, of which the first so many in the order of preference are likely."""
    length = candidates.sets.shape[1]
    of_one, least, drawn = search.deviation(length, 1), search.least(levels), search.drawn(length)
    usual = usual_contributions(length, of_one, least, drawn)
    ends = size_classes(of_one, least, len(candidates), given_contributions(search.task, length), usual, drawn)
    if not ends:
        return Truncation(len(candidates))
    kernel = ItemsetClasses(ends, candidates.sets, order, likely)
    held, sigma = await search.sizes(length, lambda: data.total(kernel))
    opened_likely, opened = np.split(held, 2)
    return itemset_truncation(ends, opened_likely, opened, sigma, of_one, least, len(candidates), usual, length == 2)


def _bounds(truncation: Truncation, order: NDArray[np.int64], likely: int) -> NDArray[np.float64]:
    """By how much each count may be too low, by the candidate's place in the order of preference."""
    lost = np.full(len(order), truncation.of_any)
    lost[order[:likely]] = truncation.of_likely
    lost[order[: truncation.most]] = 0.0
    return lost


def _singles(n_items: int) -> Sets:
    return np.arange(n_items, dtype=np.int32)[:, None]


def _joined(sets: Sets, limit: int) -> Candidates:
    length = sets.shape[1] + 1
    try:
        if length == 2 and n_pairs(len(sets)) > limit:
            raise EnumerationLimit(limit)
        return join(sets, limit)
    except EnumerationLimit:
        raise shareable(
            ConfigurationError(
                f"by their noisy supports there are more than {limit} candidates of {length} items; raise "
                "min_support, or epsilon so that there is less noise, or set max_length"
            )
        ) from None


def _truncated_counts(
    counter: LevelCounter, data: Rows, candidates: Candidates, order: NDArray[np.int64], most: int
) -> Counts:
    """Step 4."""
    pairs = candidates.sets.shape[1] == 2
    counts = counter.count_pairs() if pairs else counter.count(candidates)
    if len(candidates) <= most:
        return counts
    return counts - data.total(Excess(candidates.sets, order, most))
