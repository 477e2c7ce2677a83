"""The commented tables of a job by perturbed records."""

from __future__ import annotations

from jobs.kinds.key import Key
from jobs.kinds.templates import rules_of

_ITEMSETS = """
[itemsets]
top_k = 20                      # the most frequent itemsets
universe = "items.txt"          # the items to ask about: public, one a line; write this file beside the job
# max_length = 3                # the most items of an itemset
"""
_PRIVACY = """
[privacy]
model = "{model}"
epsilon = 1.0                   # what the result may cost a row: less hides more
{more}analyst = {analyst:<22}# adds the reports up
"""
_SHUFFLE = """\
delta = 1e-6                    # the probability of more, far below one in the number of rows
shufflers = {shufflers:<20}# through whom reports go, so that nobody knows whose is which
"""


def template(key: Key, parties: tuple[str, ...]) -> str:
    """The tables of a job of a key, `[job]` apart."""
    more = _SHUFFLE.format(shufflers=f'["{parties[-1]}"]') if key.model == "shuffle" else ""
    return _ITEMSETS + rules_of(key) + _PRIVACY.format(model=key.model, more=more, analyst=f'"{parties[0]}"')
