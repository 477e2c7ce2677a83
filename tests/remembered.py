"""What tests repeat and is done once: work of groups, this machine's speed, the tree of commands, what workers load.

Every session between two parties begins with base transfers, a tenth of a second of group operations. Tests repeat
their sessions from seeds, so most of these are the very ones of an earlier test. These functions are pure: what they
give depends on the bytes of their arguments alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, lru_cache
from multiprocessing import get_context, util
from typing import Any

import numpy as np
import pytest

from comine import command
from crypto.primitives.groups import commutative
from crypto.protocols.transfers import base_ot, seed_trees
from jobs.plan.calibration import Speed, measure
from link.executor import Executor
from link.runtime import process_executor
from mining.partitioned import workers
from party.jobs.planning import estimate

KEPT = 4096  # results by function: of 8 kB and less each
FUNCTIONS = (
    (commutative, "multiply"),
    (base_ot, "base_multiply"),
    (base_ot, "from_uniform_bytes"),
    (base_ot, "subtract"),
    (base_ot, "point_hash"),
    (base_ot, "receivers_keys"),
    (base_ot, "senders_keys"),
    (seed_trees, "children"),
)
LOADED_BY_WORKERS = (
    "mining.partitioned.encoding.encode",
    "mining.partitioned.processes",
    "crypto.primitives.paillier.workers",
)


def remember_groups_work(patch: pytest.MonkeyPatch) -> None:
    """Lets the process remember their results from now on."""
    for module, name in FUNCTIONS:
        patch.setattr(module, name, remembered(getattr(module, name)))


def remember_speed(patch: pytest.MonkeyPatch) -> None:
    """Lets nodes in this process measure it once: half a second for each of them otherwise."""
    known: list[Speed] = []

    async def once(executor: Executor) -> Speed:
        if not known:
            known.append(await measure(executor))
        return known[0]

    patch.setattr(estimate, "measure", once)


def remember_commands(patch: pytest.MonkeyPatch) -> None:
    """Lets this process read how its commands are called once, as a process of its own does."""
    patch.setattr(command, "application", cache(command.application))


def remember_what_workers_load(patch: pytest.MonkeyPatch) -> None:
    """Lets worker processes of this process be forked from one that has loaded what they need.

    It is spawned, and holds no keys, streams or sockets, so its forks inherit as little as workers that are spawned.
    """
    if sys.platform == "linux":
        util.get_temp_dir()  # before a test has another one, whose name may be too long for the socket that leads there
        context = get_context("forkserver")
        context.set_forkserver_preload([*LOADED_BY_WORKERS])
        for module in (process_executor, workers):
            patch.setattr(module, "get_context", lambda _: context)


def spawn_workers(patch: pytest.MonkeyPatch) -> None:
    """Lets worker processes begin as they do without tests: with the environment of that moment."""
    for module in (process_executor, workers):
        patch.setattr(module, "get_context", get_context)


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The pure function of arrays and bytes; it returns arrays of the caller's own. Errors are not remembered."""

    @lru_cache(KEPT)
    def result(*arguments: Any) -> Any:
        return function(*map(_opened, arguments))

    def wrapped(*arguments: Any) -> Any:
        found = result(*map(_frozen, arguments))
        return tuple(each.copy() for each in found) if isinstance(found, tuple) else found.copy()

    return wrapped


def _frozen(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.shape, argument.tobytes()
    return argument


def _opened(argument: Any) -> Any:
    if isinstance(argument, tuple):
        dtype, shape, octets = argument
        return np.frombuffer(octets, dtype).reshape(shape)
    return argument
