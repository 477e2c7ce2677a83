"""Loading modules quickly, where somebody waits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading(*, for_good: bool = False) -> Iterator[None]:
    """Imports inside are not searched for garbage: what modules make stays, and to look takes a tenth of the time.

    Args:
        for_good: Whether the process is a single command, which ends before it could matter that whatever there is now
            is never searched again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if collects:
            gc.enable()
