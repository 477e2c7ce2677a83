"""The same task under a privacy model that comine does not have."""

from jobs.kinds.key import keys

KEYS = keys(("basket-sizes",), ("horizontal",), ("laplace",))
