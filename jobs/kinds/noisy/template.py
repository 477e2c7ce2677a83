"""The commented tables of a job with noise inside its sums."""

from __future__ import annotations

from jobs.kinds.key import Key
from jobs.kinds.templates import itemsets, rules_of

_PRIVACY = """
[privacy]
model = "distributed"           # the parties add noise inside the secure sum: nobody sees a count without it
epsilon = 1.0                   # what the result may cost a row: less hides more
delta = 1e-6                    # the probability of more, far below one in the number of rows
# colluding = 1                 # how many parties may pool what they know
"""


def template(key: Key) -> str:
    """The tables of a job of a key, `[job]` apart."""
    return itemsets('# universe = "items.txt"        # a public catalogue, one item a line') + rules_of(key) + _PRIVACY
