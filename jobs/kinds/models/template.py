"""The commented tables of jobs that learn a model."""

from __future__ import annotations

from jobs.kinds.templates import COLUMNS

_CLASSIFIED = """
target = "outcome"              # the column to predict
attributes = ["age", "smoker"]  # from these
"""
_TABLES = {
    "naive-bayes": f"""
[naive_bayes]{_CLASSIFIED}# smoothing = 1               # added to the count of every value
""",
    "decision-tree": f"""
[decision_tree]{_CLASSIFIED}min_rows = 20                   # at least two branches of a split have so many rows or more
max_depth = 4                   # the most splits on the way to a leaf
# criterion = "c45"             # or "id3"
""",
    "k-means": """
[k_means]
attributes = ["age", "weight"]  # columns of numbers: the coordinates
k = 3                           # how many clusters
# seed = 1                      # of the first centroids; public
""",
}
_NUMBERS = """
[columns]                       # between which numbers each lies, which nobody guesses from data
age = { low = 0, high = 120 }
weight = { low = 0, high = 250 }
"""


def template(task: str) -> str:
    """The tables of a model and of its columns."""
    return _TABLES[task] + (_NUMBERS if task == "k-means" else COLUMNS)
