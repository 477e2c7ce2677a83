"""The commented tables of a blended job."""

from __future__ import annotations

from jobs.kinds.key import Key
from jobs.kinds.templates import rules_of

_ITEMSETS = """
[itemsets]
top_k = 20                      # the most frequent itemsets
max_length = 1                  # single items
# universe = "items.txt"        # a public catalogue, one item a line
"""
_PRIVACY = """
[privacy]
model = "blended"
epsilon = 1.0                   # what the result may cost a row: less hides more
delta = 1e-6                    # the probability of more, for rows at trusted parties
opted_in = {trusted:<21}# whose people trust them to count; the rows of all others are perturbed
analyst = {analyst:<22}# combines the estimates
"""


def template(key: Key, parties: tuple[str, ...]) -> str:
    """The tables of a job of a key, `[job]` apart."""
    trusted, analyst = f'["{parties[1]}"]', f'"{parties[0]}"'
    return _ITEMSETS + rules_of(key) + _PRIVACY.format(trusted=trusted, analyst=analyst)
