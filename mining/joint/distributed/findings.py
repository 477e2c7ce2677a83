"""From noisy supports to the result: itemsets with deviations, rules with intervals. It costs no more of the budget.

An itemset is at least as frequent as each that holds it. So it is taken to have at least the noisy supports of those
that hold it, and all subsets of an itemset of the result are in it too. The counts of the result are the raw ones.

A count may be too low by what truncation lost, up to a bound. So the deviation in the result is that of an unbiased
estimate whose interval would be as wide as it must be whatever was lost (`ldp.bias_aware`). No more can have been lost
than leaves the support below that of the rarest subset.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ldp.bias_aware import ONE_SIDED, deviations_with_bias
from ldp.sets.rules import fieller
from link.errors import ConfigurationError, shareable
from mining.estimates import NORMAL_95, EstimatedItemsets
from mining.joint.distributed.candidates import NoisyLevel
from mining.joint.parameters import RuleParameters
from mining.joint.tally import Counts
from mining.lattice import subset_positions
from mining.rules.estimated import EstimatedRule, EstimatedRules
from mining.rules.growth import MAX_RULES


def findings(
    items: tuple[str, ...], levels: Sequence[NoisyLevel], least: float | None, top_k: int | None, n_rows: int
) -> EstimatedItemsets:
    """The itemsets that reach the least support, or the k largest of them.

    Args:
        items: The dictionary.
        levels: The itemsets of 1, 2, … items that went on, all subsets of each among them.
        least: What an itemset must reach; None for no bar.
        top_k: The most itemsets; None for all.
        n_rows: The noisy number of rows.
    """
    supports = _at_least_supersets(levels)
    order = np.argsort(-np.concatenate([np.empty(0, np.int64), *supports]), kind="stable")  # of equals, shorter ones
    chosen = np.zeros(len(order), bool)
    chosen[order[:top_k]] = True
    kept, start = [], 0
    for level, support, deviations in zip(levels, supports, _deviations(levels), strict=True):
        mask = chosen[start : start + len(support)]
        start += len(support)
        if least is not None:
            mask = mask & (support >= least)
        kept.append((level.sets[mask], level.counts[mask].astype(np.float64), deviations[mask]))
    return EstimatedItemsets(items, kept, n_rows).canonical()


def noisy_rules(itemsets: EstimatedItemsets, asked: RuleParameters) -> EstimatedRules:
    """The rules over noisy supports whose confidence seems to reach what is asked, with Fieller's intervals.

    Noise in different supports is independent. A rule is in the result where its antecedent's support differs from 0.

    Raises:
        ConfigurationError: There are too many rules.
    """
    counted = {
        tuple(each): (count, deviation**2)
        for sets, counts, deviations in itemsets.levels
        for each, count, deviation in zip(sets.tolist(), counts.tolist(), deviations.tolist(), strict=True)
    }
    least, found = float(asked.min_confidence), list[EstimatedRule]()
    for whole, (both, variance) in counted.items():
        shortest = 1 if asked.consequent == "any" else max(1, len(whole) - 1)
        for antecedent in (part for size in range(shortest, len(whole)) for part in combinations(whole, size)):
            count, of_count = counted[antecedent]
            ends = fieller(both, count, variance, of_count, 0.0, NORMAL_95)
            if ends is None or _share(both / count) < least:
                continue
            if len(found) == MAX_RULES:
                raise shareable(
                    ConfigurationError(
                        f"more than {MAX_RULES} rules reach this confidence; raise min_confidence or min_support"
                    )
                )
            consequent = tuple(item for item in whole if item not in antecedent)
            low, high = map(_share, ends)
            sides = [tuple(itemsets.items[item] for item in side) for side in (antecedent, consequent)]
            found.append(EstimatedRule(sides[0], sides[1], _share(both / count), low, high))
    return EstimatedRules(itemsets, tuple(sorted(found, key=EstimatedRule.order)))


def _at_least_supersets(levels: Sequence[NoisyLevel]) -> list[Counts]:
    """By length the noisy supports, each raised to the largest of the itemsets that hold it."""
    raised = [level.counts.copy() for level in levels]
    for length in range(len(levels) - 1, 0, -1):
        at = subset_positions(levels[length].sets, levels[length - 1].sets)
        np.maximum.at(raised[length - 1], at.ravel(), np.repeat(raised[length], at.shape[1]))
    return raised


def _deviations(levels: Sequence[NoisyLevel]) -> list[NDArray[np.float64]]:
    """By length the deviations of the result, in six digits, which are the same on every machine."""
    found, above = list[NDArray[np.float64]](), np.empty(0)
    for at, level in enumerate(levels):
        lost = level.lost
        if at:
            rarest = above[subset_positions(level.sets, levels[at - 1].sets)].min(axis=1)
            lost = np.clip(rarest - level.counts, 0, lost)
        above = level.counts + lost + ONE_SIDED * level.sigma
        widened = deviations_with_bias(level.sigma, lost)
        found.append(np.array([float(f"{each:.6g}") for each in widened.tolist()]))
    return found


def _share(ratio: float) -> float:
    return min(max(ratio, 0.0), 1.0)
