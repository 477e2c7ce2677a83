"""Pieces of the commented tables that several kinds of jobs write for `comine job new`."""

from __future__ import annotations

from typing import Final

from jobs.kinds.key import Key

RULES: Final = """
[rules]
min_confidence = 0.5            # of all rows with the antecedent, the least share that has the consequent, too
# consequent = "single"         # "any": several items, too
# measures = ["confidence", "lift", "leverage", "conviction"]
"""

ALIGN: Final = """
[align]                         # how rows of the same id are found
mode = "intersection"           # each party learns which of its own rows all others have; "union" hides that
# trim = true                   # ids without white space around them
# case = "fold"                 # ids that differ in case only are equal
# unicode = "NFC"               # and so are é in one character and in two
# bound = 100_000               # the most rows of any party: hides how many there are
"""

COLUMNS: Final = """
[columns]                       # what the cells of each column mean, which nobody guesses from data
outcome = { values = ["no", "yes"] }
age = { cuts = [30, 50, 70] }   # numbers, cut into intervals
smoker = { values = ["no", "yes", ""] }  # "" where cells may be empty
"""


def rules_of(key: Key) -> str:
    """The table of the rules, for a task that has one."""
    return RULES if key.task == "rules" else ""


def itemsets(*lines: str) -> str:
    """The table of the itemsets, with further lines of a kind."""
    return "\n".join(
        (
            "",
            "[itemsets]",
            "min_support = 0.01              # a fraction of all rows, such as 0.01, or a count, such as 100",
            "                                # (policies may ask for a count, of 10 as comine init writes them: of 500",
            "                                # rows in all, 0.01 comes to 5, and such a job ends; 0.02 would do)",
            "# top_k = 100                   # only the most frequent; beside min_support, or in its place",
            "# max_length = 5                # the most items of an itemset",
            '# exclude = ["bag*"]            # items that every party leaves out: * any text, ? any character',
            *lines,
            "",
        )
    )
