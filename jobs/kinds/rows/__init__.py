"""Itemsets and rules over rows that parties hold for themselves."""

from jobs.kinds.key import keys

KEYS = keys(("itemsets", "rules"), ("horizontal", "hybrid"), ("exact",))
