"""From estimated frequencies to the result: itemsets with counts and deviations, and rules with intervals."""

from __future__ import annotations

import numpy as np

from ldp.sets.plan import Supports
from ldp.sets.rules import estimated_rules
from mining.estimates import EstimatedItemsets
from mining.joint.estimated import Estimated
from mining.joint.hybrid.parameters import HybridMining
from mining.joint.spent import Spent
from mining.rules.estimated import EstimatedRule, EstimatedRules
from mining.thresholds import minimum_count


def findings(supports: Supports, task: HybridMining, n_rows: int, spent: Spent) -> Estimated:
    """The result for the learners.

    Args:
        supports: Of the k itemsets that were found, of the catalogue's numbers.
        task: The public parameters.
        n_rows: Records of all parties.
        spent: What was spent.

    Raises:
        ConfigurationError: min_support is a count above the number of records.
    """
    if task.min_support is not None:
        least = minimum_count(task.min_support, n_rows)
        supports = _reaching(supports, least / n_rows)
    itemsets = _itemsets(supports, task.catalogue, n_rows)
    return Estimated(itemsets, spent, None if task.rules is None else _rules(supports, task, itemsets))


def _reaching(supports: Supports, least: float) -> Supports:
    kept = np.flatnonzero(supports.frequencies >= least)
    return Supports(
        supports.domain,
        tuple(supports.itemsets[at] for at in kept.tolist()),
        supports.frequencies[kept],
        supports.covariances[np.ix_(kept, kept)],
    )


def _itemsets(supports: Supports, catalogue: tuple[str, ...], n_rows: int) -> EstimatedItemsets:
    lengths = np.array([len(each) for each in supports.itemsets], np.int64)
    counts = supports.frequencies * n_rows
    deviations = np.sqrt(np.diagonal(supports.covariances)) * n_rows
    levels = []
    for length in np.unique(lengths).tolist():
        where = np.flatnonzero(lengths == length)
        sets = np.array([supports.itemsets[at] for at in where.tolist()], np.int32)
        levels.append((sets, counts[where], deviations[where]))
    return EstimatedItemsets(catalogue, levels, n_rows).canonical()


def _rules(supports: Supports, task: HybridMining, itemsets: EstimatedItemsets) -> EstimatedRules:
    assert task.rules is not None
    found = estimated_rules(supports, float(task.rules.min_confidence))
    named = [
        EstimatedRule(
            tuple(task.catalogue[item] for item in rule.antecedent),
            tuple(task.catalogue[item] for item in rule.consequent),
            rule.confidence,
            rule.confidence_low,
            rule.confidence_high,
        )
        for rule in found
        if task.rules.consequent == "any" or len(rule.consequent) == 1
    ]
    return EstimatedRules(itemsets, tuple(sorted(named, key=EstimatedRule.order)))
