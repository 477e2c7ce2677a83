"""The rows that several parties have in common, and nothing else."""

from jobs.kinds.key import keys

KEYS = keys(("align",), ("vertical",), ("exact",))
