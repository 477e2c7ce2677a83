"""Itemsets and rules over columns of the same rows at several parties."""

from jobs.kinds.key import keys

KEYS = keys(("itemsets", "rules"), ("vertical",), ("exact",))
