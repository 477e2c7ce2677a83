"""The commented tables of a job over columns."""

from __future__ import annotations

from jobs.kinds.key import Key
from jobs.kinds.templates import ALIGN, itemsets, rules_of

_HOW = (
    'disclose = "supports"           # whose sums are opened: of frequent itemsets; "candidates"; none: "frequent"',
    '# engine = "auto"               # how products are computed: "ot", "paillier", or with a helper "replicated"',
    "# cuts = { age = [18, 40, 65] } # columns of numbers, cut into intervals",
    "# quantiles = { income = 4 }    # cut into so many parts of equal size",
)


def template(key: Key) -> str:
    """The tables of a job of a key, `[job]` apart."""
    return ALIGN + itemsets(*_HOW) + rules_of(key)
