"""The part of what is frequent that a job asks for."""

from __future__ import annotations

from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.spec.job import JobSpec
from mining.itemsets import Itemsets
from mining.rules.association import Rules


def found_itemsets(spec: JobSpec, itemsets: Itemsets | None, rules: Rules | None) -> FoundItemsets | None:
    """Of the frequent itemsets those that the job wants; None at a party that learns none."""
    if itemsets is None:
        return None
    most = spec.itemsets.top_k
    return FoundItemsets(itemsets if most is None else itemsets.most_frequent(most), rules)
