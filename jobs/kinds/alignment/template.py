"""The commented table of an alignment."""

from jobs.kinds.templates import ALIGN

TEMPLATE = ALIGN.replace(
    'mode = "intersection"           # each party learns which of its own rows all others have; "union" hides that',
    'mode = "cardinality"            # only how many rows all have; "intersection": also which of its own; "union"',
)
