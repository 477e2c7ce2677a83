"""The commented tables of a job over rows."""

from __future__ import annotations

from jobs.kinds.key import Key
from jobs.kinds.templates import itemsets, rules_of

_HOW = (
    'disclose = "supports"           # whose sums are opened: of frequent itemsets; "candidates"; none: "frequent"',
    '# strategy = "auto"             # "level-wise", or "one-shot": few rounds, more disclosed',
    '# prefer = "balanced"           # what auto values: "disclosure" says as little as possible, or "speed"',
    '# universe = "items.txt"        # a public catalogue, one item a line; without it the parties find the items',
)
_MORE = """
# [union]
# bound = 4096                  # the most elements of a party's list: hides how many it has

# [trust]
# compute = {compute}  # who holds the shares of hidden sums; these two together could learn them
# helper = "auto"               # a third holds shares too where that is cheaper: any two could learn these sums
# security = "malicious"        # nodes that deviate are caught: needs a helper, or a file of items
"""
_EXACT = """
[privacy]
model = "exact"                 # no noise: only what the job opens is learnt
"""


def template(key: Key, parties: tuple[str, ...]) -> str:
    """The tables of a job of a key, `[job]` apart."""
    compute = f'["{parties[0]}", "{parties[1]}"]'
    privacy = _EXACT if key.partition == "hybrid" else ""
    return itemsets(*_HOW) + rules_of(key) + privacy + _MORE.format(compute=compute)
