"""A kind of job that comine does not have: how many rows of all parties have how many items."""

from jobs.kinds.key import keys

KEYS = keys(("basket-sizes",), ("horizontal",), ("exact",))
