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
_TRUST = """
# [trust]
# compute = {compute}  # who holds the shares of hidden sums; these two together could learn them
# helper = "{helper}"        # makes products cheap: {could} could learn columns
# security = "malicious"        # nodes that deviate are caught: needs three parties or more, one of them the helper
"""


def template(key: Key, parties: tuple[str, ...]) -> str:
    """The tables of a job of a key, `[job]` apart."""
    compute = f'["{parties[0]}", "{parties[1]}"]'
    helper = "coordinator" if len(parties) == 2 else parties[2]
    could = "with one of the two it" if len(parties) == 2 else "any two of the three"
    return ALIGN + itemsets(*_HOW) + rules_of(key) + _TRUST.format(compute=compute, helper=helper, could=could)
