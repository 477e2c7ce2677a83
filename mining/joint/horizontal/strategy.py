"""Which strategy `auto` takes, from public values alone: the number of frequent items, of parties, and c."""

from __future__ import annotations

from typing import Literal

from mining.joint.parameters import HorizontalMining
from mining.pairs import n_pairs
from mining.thresholds import tells_of_rows

# Seconds on one core of a machine of 2024, where only their ratio matters.
_PER_SUM = 5e-7  # counting, masking, moving and adding one candidate's count, per party
PER_COMPARISON = 1.5e-6  # of one candidate's sum that stays shared, both computing parties together
PER_COMPARISON_OF_THREE = 2e-7  # the same, all three computing parties together
PER_MULTIPLICATION = 4e-5  # one scalar multiplication of ristretto255
_AT_ONCE = 1 << 14  # candidates, up to which a checked batch takes less time than its rounds over a wide area
_MAXIMAL_PER_ITEM = 4  # maximal itemsets in the union per frequent item: 3 to 6 on the public benchmark data


def thins(task: HorizontalMining, n_parties: int, min_count: int) -> bool:
    """Whether levels are thinned: not where the union of locally frequent candidates would show single rows."""
    return task.thin and not tells_of_rows(min_count, n_parties)


def pairs_with_items(task: HorizontalMining, n_items: int) -> bool:
    """Whether pairs are decided in one batch with the items that have names, though some of these are not frequent.

    A batch that three check takes three times the rounds of another, however few candidates it has; between two, what
    each candidate takes is dearer than rounds. A pair with an infrequent
    item is infrequent, as all know: nothing more is disclosed of it.

    Args:
        task: The public parameters.
        n_items: Of the catalogue, or of the union.
    """
    pairs = n_pairs(n_items)
    few = 0 < pairs <= task.max_candidates and n_items + pairs <= _AT_ONCE
    by_levels = task.strategy == "level-wise" and task.allows(2) and not task.thin
    return few and by_levels and task.is_verified and task.helper is not None and not task.hides_names


def choose(task: HorizontalMining, n_items: int, n_parties: int, min_count: int) -> Literal["level-wise", "one-shot"]:
    """The strategy for itemsets of two or more items.

    Level-wise decides on candidates that follow from the output; the union of the one-shot strategy also reveals which
    itemsets are locally frequent somewhere. So level-wise is taken unless its second level is over the job's limit, or
    speed is preferred and its sums are expected to cost more than a union. Where disclosure is preferred, a level over
    the limit ends the job. One-shot is never taken, even where the job asks for it, if a local threshold may be 1:
    every subset of a row would be frequent there, and the union would show the row.

    Args:
        task: The public parameters.
        n_items: Number of frequent items.
        n_parties: Number of parties.
        min_count: c.
    """
    if tells_of_rows(min_count, n_parties):
        return "level-wise"
    if task.strategy != "auto":
        return task.strategy
    pairs = n_pairs(n_items)
    if not task.allows(2) or task.prefer == "disclosure":
        return "level-wise"
    if pairs > task.max_candidates:
        return "one-shot"
    union_size = _MAXIMAL_PER_ITEM * n_items
    one_shot_s = n_parties * (n_parties + 1) * union_size * PER_MULTIPLICATION
    per_comparison = PER_COMPARISON if task.helper is None else PER_COMPARISON_OF_THREE
    level_wise_s = pairs * (n_parties * _PER_SUM + task.is_shared * per_comparison)
    return "one-shot" if task.prefer == "speed" and one_shot_s < level_wise_s else "level-wise"
