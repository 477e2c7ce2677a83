"""What a quickstart asks of the data: the job, with a least support that suits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain, pairwise
from typing import Final

from link.errors import UsageError
from link.files.toml_text import quoted
from mining.data.transactions import Transactions
from mining.miner import EnumerationLimit, frequent_itemsets
from mining.thresholds import minimum_count

DATASET: Final = "baskets"
TASKS: Final = ("rules", "itemsets")
_SUPPORTS: Final = tuple(map(Decimal, ("0.5", "0.3", "0.2", "0.1", "0.05", "0.03", "0.02", "0.01", "0.005", "0.002")))
_LOOKED_AT: Final = 5_000  # rows of each party, by which the least support is chosen
_ENOUGH: Final = 20  # itemsets of several items
_MOST: Final = 2_000  # itemsets: more show nobody anything
_LONGEST: Final = 3
_LONGEST_FOUND: Final = 4  # so that it also ends soon where rows are alike
_LEAST_COUNT: Final = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        task: "rules" or "itemsets".
        min_support: A fraction in (0, 1], or a count; None: what suits the data.
        min_confidence: Of rules.
    """

    task: str
    min_support: Decimal | int | None
    min_confidence: Decimal

    @classmethod
    def of(cls, task: str, min_support: str | None, min_confidence: str) -> Wanted:
        """What the command line says.

        Raises:
            UsageError: It says something that cannot be.
        """
        if task not in TASKS:
            raise UsageError(f"--task is {' or '.join(TASKS)}, not '{task}'; comine job new writes jobs of other tasks")
        if min_support is None:
            support: Decimal | int | None = None
        elif min_support.isdecimal() and int(min_support) > 0:
            support = int(min_support)
        else:
            support = _fraction("--min-support", min_support)
        return cls(task, support, _fraction("--min-confidence", min_confidence))

    def job(self, parties: Sequence[str], min_support: Decimal | int) -> str:
        """The text of the job file."""
        rules = f"""
[rules]
min_confidence = {self.min_confidence}      # of all transactions with the antecedent, the share with the consequent
consequent = "single"
measures = ["confidence", "lift"]
"""
        return f"""\
# The job of `comine quickstart`. Change it, and run it again; `comine job new` writes jobs of every task.
[job]
name = "quickstart"
task = "{self.task}"
parties = {quoted(list(parties))}
dataset = "{DATASET}"
recipients = ["coordinator"]
deadline = "10m"

[itemsets]
min_support = {min_support}         # a fraction of the transactions of all parties, or a count of them
max_length = {_LONGEST_FOUND}             # the most items of an itemset; without this line any
{rules if self.task == "rules" else ""}"""


def fitting_support(data: Sequence[Transactions]) -> Decimal:
    """The highest of some round supports at which there is something to see, judged by the first rows of each party."""
    rows = Transactions.from_rows(chain.from_iterable(map(_first_rows, data)))
    chosen = _SUPPORTS[0]
    for support in _SUPPORTS:
        count = minimum_count(support, rows.n_rows) if rows.n_rows else 0
        if count < _LEAST_COUNT:
            break
        try:
            found = frequent_itemsets(rows, count, max_length=_LONGEST, limit=_MOST)
        except EnumerationLimit:
            break
        chosen = support
        if sum(len(sets) for sets, _ in found.levels[1:]) >= _ENOUGH:
            break
    return chosen


def _first_rows(data: Transactions) -> list[list[str]]:
    first = data.between(0, min(data.n_rows, _LOOKED_AT))
    ends = first.offsets.tolist()
    return [[data.items[index] for index in first.indices[start:stop]] for start, stop in pairwise(ends)]


def _fraction(option: str, text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not (value.is_finite() and 0 < value <= 1):
        raise UsageError(f"{option} is a fraction in (0, 1], such as 0.05, not '{text}'")
    return value.normalize()
