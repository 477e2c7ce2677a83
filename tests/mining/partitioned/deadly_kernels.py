"""Kernels that end the process that runs them, or stay in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions


@dataclass(frozen=True)
class Deadly:
    """Counts, and is killed over rows with the item 0 as often as it may.

    Attributes:
        folder: Where each death is noted.
        deaths: The most.
        kernel: What counts.
    """

    folder: Path
    deaths: int
    kernel: Callable[[Transactions], NDArray[np.int64]] = Transactions.item_counts

    def __call__(self, rows: Transactions) -> NDArray[np.int64]:
        died = len(list(self.folder.iterdir()))
        if (rows.indices == 0).any() and died < self.deaths:
            (self.folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.kernel(rows)


@dataclass(frozen=True)
class Endless:
    """Tells that it has begun, and never ends.

    Attributes:
        begun: The file that tells it.
    """

    begun: Path

    def __call__(self, _rows: Transactions) -> NDArray[np.int64]:
        draft = self.begun.with_name(f"{self.begun.name}-{os.getpid()}")  # of two processes one may be killed here
        draft.write_text(str(os.getpid()))
        draft.replace(self.begun)
        while True:
            time.sleep(0.01)


def lives(process: int) -> bool:
    """Whether a process of this number is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
