"""Looks at a dataset as a job would read it: its sizes, and signs that it is not what its owner means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from link.errors import ConfigurationError, InputDataError
from mining.loading import load_transactions
from mining.transactions import Transactions
from party.config import DatasetSection
from party.dataset_hints import Hint, hints, other_format

RARE: Final = 10  # transactions; the min_count that `comine init` writes


@dataclass(frozen=True, slots=True)
class Profile:
    """Sizes of a dataset.

    Attributes:
        rows: Transactions.
        items: Distinct items.
        row_items: The fewest, the median and the most items of a transaction.
        empty_rows: Transactions without items.
        rare_items: Items in fewer than `RARE` transactions.
        longest_item: Bytes of the longest item in UTF-8.
    """

    rows: int
    items: int
    row_items: tuple[int, float, int]
    empty_rows: int
    rare_items: int
    longest_item: int

    @classmethod
    def of(cls, data: Transactions) -> Profile:
        """The sizes of `data`."""
        lengths = data.lengths if data.n_rows else np.zeros(1, np.int64)
        return cls(
            rows=data.n_rows,
            items=data.n_items,
            row_items=(int(lengths.min()), float(np.median(lengths)), int(lengths.max())),
            empty_rows=int(np.count_nonzero(data.lengths == 0)),
            rare_items=int(np.count_nonzero(data.item_counts() < RARE)),
            longest_item=max((len(item.encode()) for item in data.items), default=0),
        )

    @property
    def rare_share(self) -> float:
        """Share of the items that are rare."""
        return self.rare_items / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """What was found out about one dataset.

    Attributes:
        name: The dataset.
        format: Its format.
        profile: Its sizes; absent where it cannot be read.
        hints: Signs of mistakes.
        problem: Why it cannot be read.
    """

    name: str
    format: str
    profile: Profile | None = None
    hints: tuple[Hint, ...] = ()
    problem: str = ""


def check_dataset(dataset: DatasetSection, *, show_items: bool = False) -> DatasetCheck:
    """Reads a dataset as a job would, and looks at it.

    Args:
        dataset: With a source that is absolute, or relative to the current folder.
        show_items: Whether `problem` may name a column that is an item.
    """
    try:
        data = load_transactions(
            dataset.source if dataset.is_url else Path(dataset.source),
            dataset.format,
            separator=dataset.separator,
            query=dataset.query,
            id_column=dataset.id,
            item_column=dataset.item,
        )
    except (InputDataError, ConfigurationError) as error:
        problem = error.message.removesuffix(".")
        if dataset.format in ("wide", "parquet") and not show_items:  # whose columns are items
            problem = re.sub(r'(column|named) ".*"', r"\1 … (--show-items tells which)", problem)
        return DatasetCheck(dataset.name, dataset.format, problem=problem + other_format(dataset))
    return DatasetCheck(dataset.name, dataset.format, Profile.of(data), hints(data, dataset))
