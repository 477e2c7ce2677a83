"""Itemsets from sums to which the parties add noise."""

from jobs.kinds.key import keys

KEYS = keys(("itemsets", "rules"), ("horizontal", "hybrid"), ("distributed",))
