"""Processes that begin quickly, to be killed: all modules that their tests need are there before the first begins."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_PRELOADED = [
    "__main__",
    "tests.party.services.frequency.killed",
    "tests.party.services.frequency.served",
]  # one server of a test run forks them all


def forking() -> ForkServerContext:
    """Where such processes come from."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context
