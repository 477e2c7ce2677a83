"""What a plan takes each party to be: its machine, and sizes that follow from what it publishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jobs.documents.budget import Amounts
from protos.v1.plan_pb2 import Speed


@dataclass(frozen=True)
class SetSize:
    """A set that a party is taken to bring into a union.

    Attributes:
        elements: Its size.
        element_bytes: Of an element, on average.
        novelty: The share of a further party's elements that no other has.
    """

    elements: int
    element_bytes: int = 4
    novelty: float = 0.0


@dataclass(frozen=True)
class ColumnSizes:
    """A party's columns.

    Attributes:
        columns: How many, those of ids not counted.
        column_bytes: Of the longest name of a column.
        item_bytes: Of the longest name of an item.
        by_support: Of 1, 2, 3, … items: how many itemsets are frequent in its own rows, by class of support, the most
            frequent first; classes are equal ratios from all rows down to the job's threshold.
    """

    columns: int
    column_bytes: int
    item_bytes: int
    by_support: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ItemsetSizes:
    """What a party is taken to find in its own rows.

    Attributes:
        candidates: Of 1, 2, 3, … items: what all parties would count if all were like this one.
        frequent: Of 1, 2, 3, … items: how many itemsets would be frequent.
        items: Those that are locally frequent.
        held: All items that occur; None where that is not known.
        rules: How many rules would be examined, batch by batch.
        itemsets: For the union of the one-shot strategy; None where there are too many.
        closure: The itemsets of two or more items that these represent.
        levels: Of 2, 3, … items: for the unions that thin the candidates.
        columns: Of a table.
    """

    candidates: tuple[int, ...]
    frequent: tuple[int, ...]
    items: SetSize
    held: SetSize | None = None
    rules: tuple[int, ...] = ()
    itemsets: SetSize | None = None
    closure: SetSize | None = None
    levels: tuple[SetSize, ...] = ()
    columns: ColumnSizes | None = None


@dataclass(frozen=True)
class Answer:
    """A party, as a plan takes it to be.

    Attributes:
        party: Its name.
        speed: Of its machine.
        certificate_bytes: Of its certificate.
        n_rows: Its rows; None where it does not publish their number.
        sizes: Of its itemsets; None where it publishes none of them.
        left: What is left of its totals for the privacy of records, where it says so.
        block_bytes: Of the processes that count its rows where these lie in blocks, 0 on a cluster; None: its rows are
            in memory.
        level_s: Seconds that a cluster takes for a level over its rows, where it publishes them.
    """

    party: str
    speed: Speed
    certificate_bytes: int
    n_rows: int | None = None
    sizes: ItemsetSizes | None = None
    left: Amounts | None = None
    block_bytes: int | None = None
    level_s: float | None = None

    @property
    def rows_public(self) -> Literal["rounded", "hidden"]:
        """How exactly the number of rows is known."""
        return "hidden" if self.n_rows is None else "rounded"

    @property
    def rows(self) -> int:
        """The number of rows as far as it is known, else 0."""
        return self.n_rows or 0
