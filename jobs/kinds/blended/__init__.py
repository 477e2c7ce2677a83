"""Items from noisy counts of trusted parties and perturbed records of the others."""

from jobs.kinds.key import keys

KEYS = keys(("itemsets", "rules"), ("hybrid",), ("blended",))
