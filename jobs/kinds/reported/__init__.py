"""Itemsets from perturbed records that are reported to an analyst, under local privacy or through shufflers."""

from jobs.kinds.key import keys

KEYS = keys(("itemsets", "rules"), ("hybrid",), ("local", "shuffle"))
PURE = ("local",)
