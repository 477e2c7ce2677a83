"""Rows in memory, cut into blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from link.errors import ResourceError
from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block
from mining.partitioned.cores import Cores
from mining.partitioned.encoding import encode
from mining.partitioned.in_process import InProcess
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.runner import Runner, Source, View
from tests.mining.partitioned.deadly_kernels import Endless

PARTITIONS = [1, 3, 17]

Engine = Callable[[Sequence[Source], Sequence[int]], Runner[View, Transactions]]


def evenly(n_rows: int, parts: int) -> list[int]:
    """Where blocks end if all have about as many rows; some are empty where there are few."""
    return [n_rows * part // parts for part in range(parts + 1)]


def partitioned(data: Transactions, cuts: Sequence[int], engine: Engine = InProcess) -> PartitionedRows:
    """The rows in blocks that end at these cuts."""
    blocks = [Block.of(data.between(start, stop)).to_bytes() for start, stop in pairwise(cuts)]
    sources = [partial(Block.from_bytes, block, f"block {place}") for place, block in enumerate(blocks)]
    lengths = [stop - start for start, stop in pairwise(cuts)]
    return PartitionedRows(engine(sources, lengths), data.items, data.item_counts(), b"")


class Here:
    """In the place of `Workers`: the same calls in this process, for tests of what is read and not of who reads it."""

    def __init__(self, number: int, _cores: Cores) -> None:
        self.number = number

    def run(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [function(*arguments) for arguments in calls]

    def close(self) -> None:
        pass


def encode_here(patch: pytest.MonkeyPatch) -> None:
    """Lets sources be encoded without processes from now on."""
    patch.setattr(encode, "Workers", Here)


@st.composite
def ragged(draw: st.DrawFn, n_rows: int) -> list[int]:
    """Where blocks of any sizes end, empty ones among them."""
    return [0, *sorted(draw(st.lists(st.integers(0, n_rows), max_size=5))), n_rows]


def same(first: Transactions, second: Transactions) -> bool:
    """Whether numbers and rows are the same, whatever the names."""
    return (
        first.n_items == second.n_items
        and np.array_equal(first.offsets, second.offsets)
        and np.array_equal(first.indices, second.indices)
    )


def waiting(rows: Rows, begun: Path) -> tuple[threading.Thread, list[Exception]]:
    """A thread that waits for what never ends, and its error."""
    found = list[Exception]()

    def work() -> None:
        try:
            rows.total(Endless(begun))
        except ResourceError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not (begun.exists() and begun.read_text()):
        time.sleep(0.01)
    return thread, found
